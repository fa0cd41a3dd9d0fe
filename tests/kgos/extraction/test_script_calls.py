"""Calls in JavaScript are followed through objects, prototypes, `this` and what modules export."""

import pytest
from support.every import every

from kgot_lab.kgos.extraction.folder import extract_folder

# of each program its files, and all calls between its definitions by their names
PROGRAMS = {
    "an object whose functions are assigned": (
        {"a.js": "var app = {};\napp.lazy = function () {};\napp.use = function () { this.lazy(); };\nfunction run() { app.use(); }\n"},
        "use lazy, run use",
    ),
    "an object that is exported in a chain": (
        {
            "a.js": "var app = exports = module.exports = {};\napp.set = function () { return this; };\napp.init = function () { this.set().set(); };\n",
            "b.js": "require('./a').init();\n",
        },
        "init set, b.js init",
    ),
    "a prototype, its literal and its alias": (
        {
            "a.js": "function Layer() {}\nLayer.prototype.next = function () {};\nmodule.exports = Layer;\nvar proto = Layer.prototype;\n"
            "proto.run = function () { this.next(); this.end(); };\nObject.assign(Layer.prototype, { end() {} });\n",
            "b.js": "var Layer = require('./a');\nvar layer = new Layer();\nlayer.run();\n",
        },
        "run next, run end, b.js Layer, b.js run",
    ),
    "a function with members that is exported and mixed into another": (
        {
            "proto.js": "var proto = module.exports = function () {};\nproto.handle = function () { var self = this; self.step(); };\nproto.step = () => 1;\n",
            "make.js": "var mixin = require('merge-descriptors');\nvar proto = require('./proto');\nmodule.exports = function make() {\n"
            "  var app = function () { app.handle(); };\n  mixin(app, proto);\n  app.step();\n  return app;\n};\n",
            "c.js": "const made = require('./make')();\nmade.handle();\n",
        },
        "handle step, app handle, make step, c.js make, c.js handle",
    ),
    "inheritance by util.inherits and by Object.create": (
        {
            "a.js": "var util = require('util');\nfunction Base() {}\nBase.prototype.retry = function () {};\nfunction Client() { Base.call(this); }\n"
            "util.inherits(Client, Base);\nClient.prototype.get = function () { this.retry(); };\n"
            "function Other() {}\nOther.prototype = Object.create(Base.prototype);\nOther.prototype.put = function () { this.retry(); };\n"
        },
        "Client Base, get retry, put retry",
    ),
    "classes, their bases and the instances that they hold": (
        {
            "a.mjs": "export class Log { write() {} close() {} }\nexport default class File extends Log { open() { super.close(); } }\n",
            "b.mjs": "import File, { Log } from './a.mjs';\nclass Service { log = new File(); send = () => { this.log.write(); this.log.open(); }; }\n",
        },
        "open close, Service File, send write, send open",
    ),
    "members of exports, and a name taken from a require": (
        {
            "a.js": "exports.parse = function () { exports.clean(); };\nexports.clean = function () {};\nmodule.exports.other = exports.clean;\n",
            "b.js": "const { parse } = require('./a');\nvar clean = require('./a').other;\nparse(); clean();\n",
        },
        "parse clean, b.js parse, b.js clean",
    ),
    "a function that another returns, which is called by the name of its result": (
        {
            "a.mjs": "const tester = (type) => (thing) => typeof thing === type;\nexport const isText = tester('string');\n"
            "function limit(act) { return function () { act(); }; }\nconst own = limit(() => 1);\nexport function run() { own(); }\n",
            "b.mjs": "import { isText } from './a.mjs';\nfunction check(x) { return isText(x); }\n",
        },
        "a.mjs tester, a.mjs limit, run limit, check tester",
    ),
    "a function that stands in where another is missing": (
        {
            "a.js": "exports.has = Object.hasOwn || function (a, b) { return b in a; };\n"
            "const log = process.env.LOG ? (...a) => console.log(...a) : () => {};\nfunction run() { log(exports.has({}, 'a')); }\n"
        },
        "run has, run log",
    ),
    "parameters whose class is in a comment or an annotation": (
        {
            "a.js": "class Option { name() {} }\nexports.Option = Option;\n",
            "b.js": "/** @typedef { import('./a.js').Option } Option */\nclass Help {\n  /**\n   * Say it.\n   * @param {Option} option\n"
            "   * @param {Help} [helper]\n   */\n\n  term(option, helper) { helper.size(); return option.name(); }\n  size() {}\n}\n",
            "c.ts": "import { Option } from './a';\nexport function tell(option: Option, n: number) { option.name(); }\n",
        },
        "term size, term name, tell name",
    ),
    "re-exports of ES modules": (
        {
            "a.js": "export const one = () => 1;\nexport default function two() {}\n",
            "z.js": "function three() {}\nexport { three as third };\n",
            "b.js": "export * from './a.js';\nexport * as zed from './z.js';\nexport { default as second } from './a.js';\n",
            "c.js": "import * as b from './b.js';\nimport { zed, second } from './b.js';\nb.one(); second(); zed.third();\n",
        },
        "c.js one, c.js two, c.js three",
    ),
    "what functions return": (
        {
            "a.js": "const counter = () => {\n  function step() {}\n  return { inc() { step(); }, step };\n};\n"
            "var box = (function () {\n  function open() {}\n  return { open: open };\n})();\nfunction run() { const c = counter(); c.inc(); c.step(); box.open(); }\n"
        },
        "inc step, run counter, run inc, run step, run open",
    ),
    "bind, call, apply and other names": (
        {
            "a.js": "function real() {}\nconst alias = real, box = { job: real };\nfunction go() { alias(); }\nfunction get() { box.job.call(this); }\nfunction put() { const f = real.bind(null); f(); }\n"
        },
        "go real, get real, put real",
    ),
    "names that a parameter or a variable hides": (
        {"a.js": "function next() {}\nfunction each(next) { next(); }\nfunction run() { const next = get(); next(); }\nlet later;\nlater = next;\nfunction end() { later(); }\n"},
        "end next",
    ),
    "members of a package are not definitions of the file": (
        {"a.js": "const http = require('http');\nconst res = Object.create(http.ServerResponse.prototype);\nres.send = function () { this.end(); };\nhttp.patched = function () {};\n"},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_exactly_the_calls_of_a_program_are_found(tmp_path, program):
    files, calls = PROGRAMS[program]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    graph = extract_folder(tmp_path, cache=False).graph
    name_of = {id: about["name"] for id, about in zip(graph.ids, graph.node_properties, strict=True)}
    found = {
        f"{name_of[e.source]} {name_of[e.target]}"
        for e in graph.edges
        if e.type == "calls" and "#" in e.target
    }
    assert found == {call for call in calls.split(", ") if call}


@pytest.mark.parametrize(
    "manifest", ['"main": "./lib/cart"', '"exports": "./lib/cart.js"', '"main": "dist/built.js"']
)
def test_a_package_that_tests_import_by_its_own_name_or_folder_is_its_main_file(tmp_path, manifest):
    files = {
        "package.json": f'{{"name": "shop", {manifest}}}',
        "lib/cart.js": "exports.pay = function () {};\n",
        "lib/more.js": "exports.send = function () {};\n",
        "test/a.js": "const shop = require('shop');\nshop.pay();\nrequire('shop/lib/more').send();\nrequire('fs').stat();\n",
        "test/b.mjs": "import { pay } from '..';\npay();\n",
    }
    files |= {"index.js": "module.exports = require('./lib/cart');\n"} if "dist" in manifest else {}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {(e.source, e.type, e.target) for e in extract_folder(tmp_path, cache=False).graph.edges}
    for file, names in (("test/a.js", ("cart.js#pay", "more.js#send")), ("test/b.mjs", ("cart.js#pay",))):
        assert {(file, "calls", f"lib/{name}") for name in names} <= found
    main = "index.js" if "dist" in manifest else "lib/cart.js"
    assert {("test/a.js", "imports", main), ("test/b.mjs", "imports", main)} <= found
    packages = {target for _, type, target in found if type == "imports" and target.startswith("package:")}
    assert packages == {"package:fs"}


def test_what_a_package_exports_by_conditions_and_parts_is_found_under_its_name(tmp_path):
    exports = (
        '{".": {"types": "./a.d.ts", "import": "./src/a.mjs"}, "./extra": {"default": "./src/extra.js"}}'
    )
    files = {
        "package.json": f'{{"name": "@shop/all", "exports": {exports}}}',
        "src/a.mjs": "export const one = () => 1;\n",
        "src/extra.js": "exports.two = () => 2;\n",
        "b.mjs": "import { one } from '@shop/all';\nimport { two } from '@shop/all/extra';\none(); two();\n",
        "other/package.json": "[]",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    edges = extract_folder(tmp_path, cache=False).graph.edges
    called = {e.target for e in edges if (e.source, e.type) == ("b.mjs", "calls")}
    assert called == {"src/a.mjs#one", "src/extra.js#two"}


def test_the_share_of_calls_with_a_known_callee_is_counted_by_language(tmp_path):
    (tmp_path / "a.js").write_text(
        "function f(given) { given(); }\nf(); console.log(f); new Map().get(1); require('fs').stat();\n"
    )
    (tmp_path / "b.ts").write_text("const f = (): void => {};\nf();\n")
    found = extract_folder(tmp_path, cache=False)
    assert found.calls == {"javascript": (5, 6), "typescript": (1, 1), "python": (0, 0)}
    shares = "83% of 6 in JavaScript, 100% of 1 in TypeScript"
    assert found.graph.node(".").properties["calls_resolved"] == shares and shares in found.describe()


def test_a_script_imports_the_declarations_beside_a_script_that_is_missing(tmp_path):
    (tmp_path / "index.d.ts").write_text("export declare function f(): number\n")
    (tmp_path / "t.ts").write_text("import { f } from './index.js'\nf()\n")
    graph = extract_folder(tmp_path, cache=False).graph
    assert ("t.ts", "imports", "index.d.ts") in {(e.source, e.type, e.target) for e in graph.edges}


_ALIASED = ("src/app/page.tsx", "src/lib/price.ts", "src/lib/index.ts", "src/ui/index.tsx", "packages/core/src/index.ts", "packages/core/src/tax.ts")  # fmt: skip
_PATHS = '{"compilerOptions": {"paths": %s}}'


@every(
    ("config", "where", "imported", "meant"),
    [
        (_PATHS % '{"@/*": ["./src/*"]}', "tsconfig.json", "@/lib/price", "src/lib/price.ts"),
        (_PATHS % '{"@/*": ["src/*"]}', "jsconfig.json", "@/lib/price.js", "src/lib/price.ts"),
        (_PATHS % '{"@/*": ["src/*"]}', "tsconfig.app.json", "@/ui", "src/ui/index.tsx"),
        (_PATHS % '{"~/*": ["./src/app/*"]}', "tsconfig.json", "~/page", "src/app/page.tsx"),
        (_PATHS % '{"@lib": ["./src/lib/index.ts"]}', "tsconfig.json", "@lib", "src/lib/index.ts"),
        (_PATHS % '{"@lib": ["./gone", "./src/lib"]}', "tsconfig.json", "@lib", "src/lib/index.ts"),
        (_PATHS % '{"@lib/*": ["./gone/*", "./src/lib/*"]}', "tsconfig.json", "@lib/price", "src/lib/price.ts"),
        (_PATHS % '{"@shop/*": ["packages/*/src"]}', "tsconfig.json", "@shop/core", "packages/core/src/index.ts"),
        (_PATHS % '{"@shop/core/*": ["packages/core/src/*"]}', "tsconfig.base.json", "@shop/core/tax", "packages/core/src/tax.ts"),
        (_PATHS % '{"@ui": ["ui"]}', "src/tsconfig.json", "@ui", "src/ui/index.tsx"),
        ('{"compilerOptions": {"baseUrl": "src", "paths": {"#/*": ["lib/*"]}}}', "tsconfig.json", "#/price", "src/lib/price.ts"),
        ('{"compilerOptions": {"baseUrl": "./src"}}', "tsconfig.json", "lib/price", "src/lib/price.ts"),
        ('{"compilerOptions": {"baseUrl": "src"}}', "tsconfig.json", "react", "package:react"),
        ('{"compilerOptions": {"baseUrl": "src"}}', "tsconfig.json", "react/jsx-runtime", "package:react"),
        ('{\n  // names\n  "compilerOptions": {"paths": {"@/*": ["./src/*"], /* all */},},\n}', "tsconfig.json", "@/ui", "src/ui/index.tsx"),
        ('{"imports": {"#lib/*.js": "./src/lib/*.js"}}', "package.json", "#lib/price.js", "src/lib/price.ts"),
        ('{"imports": {"#lib": {"types": "./gone.d.ts", "default": "./src/lib/index.js"}}}', "package.json", "#lib", "src/lib/index.ts"),
        (_PATHS % '{"@/*": ["./src/*"]}', "other/tsconfig.json", "@/lib/price", "package:@/lib"),
        (_PATHS % '{"@/*": "./src/*"}', "tsconfig.json", "@/lib/price", "package:@/lib"),
        ("[1, 2", "tsconfig.json", "@/lib/price", "package:@/lib"),
    ],
)  # fmt: skip
def test_an_alias_of_an_import_is_the_file_that_the_compiler_takes(tmp_path, config, where, imported, meant):
    files = dict.fromkeys(_ALIASED, "export const one = () => 1;\n") | {where: config}
    files["src/main.ts"] = f"import {{ one }} from '{imported}';\none();\n"
    folder = tmp_path / str(len(list(tmp_path.iterdir())))  # one for each case
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    edges = extract_folder(folder, cache=False).graph.edges
    found = {(edge.type, edge.target) for edge in edges if edge.source == "src/main.ts"}
    assert ("imports", meant) in found
    assert ("calls", f"{meant}#one") in found or meant.startswith("package:")


def test_a_configuration_that_extends_another_has_its_aliases(tmp_path):
    files = {
        "tsconfig.base.json": _PATHS % '{"@core/*": ["./core/*"]}',
        "app/tsconfig.json": '{"extends": ["../tsconfig.base.json", "./tsconfig.json"]}',
        "core/tax.ts": "export const tax = () => 1;\n",
        "app/main.ts": "import { tax } from '@core/tax';\ntax();\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    edges = extract_folder(tmp_path, cache=False).graph.edges
    assert ("app/main.ts", "calls", "core/tax.ts#tax") in {(e.source, e.type, e.target) for e in edges}
