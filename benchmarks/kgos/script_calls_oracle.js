// Say for each call in some scripts what TypeScript's checker finds that it calls: node script_calls_oracle.js TYPESCRIPT FOLDER FILE…
// A line of JSON for each call: its file, line and name, `kind` (own, built-in, package or unknown), and of a function of the
// folder `to`: the file and line where its definition begins.
const path = require("path");
const [typescript, folder, ...names] = process.argv.slice(2);
const ts = require(typescript);
const files = names.map((name) => path.resolve(folder, name));
const program = ts.createProgram(files, {
  allowJs: true, checkJs: true, noEmit: true, types: [], maxNodeModuleJsDepth: 0, esModuleInterop: true,
  target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Node10,
});
const checker = program.getTypeChecker();
const own = new Set(files);
const isFunction = (node) => node && (ts.isFunctionLike(node) || ts.isClassLike(node)) && !ts.isFunctionTypeNode(node) && !ts.findAncestor(node, ts.isJSDoc);
const place = (node) => {
  const file = node.getSourceFile();
  return [path.relative(folder, file.fileName), file.getLineAndCharacterOfPosition(node.getStart()).line + 1];
};

function strip(node) {
  while (ts.isParenthesizedExpression(node) || ts.isAwaitExpression(node) || ts.isNonNullExpression(node) || ts.isAsExpression(node)) node = node.expression;
  return node;
}

const isRequire = (node) => ts.isCallExpression(node) && (node.expression.kind === ts.SyntaxKind.ImportKeyword ||
  (ts.isIdentifier(node.expression) && node.expression.text === "require")) && node.arguments.length === 1;

/** The module that a name is imported from, if it is none of the folder. */
function foreign(node, depth = 0) {
  node = strip(node);
  if (depth > 8) return false;
  if (isRequire(node)) return ts.isStringLiteralLike(node.arguments[0]) && !/^[./]/.test(node.arguments[0].text);
  if (ts.isPropertyAccessExpression(node) || ts.isCallExpression(node) || ts.isNewExpression(node)) return foreign(node.expression, depth + 1);
  if (!ts.isIdentifier(node)) return false;
  for (const each of checker.getSymbolAtLocation(node)?.declarations ?? []) {
    for (let up = each; up; up = up.parent) {
      if (ts.isImportDeclaration(up)) return !/^[./]/.test(up.moduleSpecifier.text);
      if (ts.isVariableDeclaration(up)) {
        if (up.initializer && foreign(up.initializer, depth + 1)) return true;
        break;
      }
    }
  }
  return false;
}

/** The function, class or method that a symbol stands for: its declaration, or what it is given as its value. */
function declared(symbol) {
  if (!symbol) return null;
  if (symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  for (const each of symbol.declarations ?? []) {
    if (isFunction(each)) return each;
    const value = each.initializer ?? (ts.isBinaryExpression(each) ? each.right : each.parent && ts.isBinaryExpression(each.parent) ? each.parent.right : null);
    let inner = value && strip(value);
    while (inner && ts.isBinaryExpression(inner)) inner = strip(inner.right); // a chain of assignments, or `… || function`
    if (isFunction(inner)) return inner;
  }
  return symbol.declarations?.[0] ?? null;
}

function resolve(node) {
  let callee = strip(node.expression);
  if (callee.kind === ts.SyntaxKind.SuperKeyword) {
    const found = checker.getTypeAtLocation(callee).symbol?.declarations?.find(isFunction);
    return found ?? checker.getResolvedSignature(node)?.declaration ?? null;
  }
  if (isFunction(callee)) return callee;
  if (ts.isPropertyAccessExpression(callee) && ["call", "apply"].includes(callee.name.text)) {
    const of = declared(checker.getSymbolAtLocation(strip(callee.expression)));
    if (isFunction(of)) return of;
  }
  const name = ts.isPropertyAccessExpression(callee) ? callee.name : callee;
  const symbol = checker.getSymbolAtLocation(name);
  const found = declared(symbol);
  if (isFunction(found)) return found;
  if (found && (ts.isParameter(found) || ts.isBindingElement(found))) return null;
  const signature = checker.getResolvedSignature(node)?.declaration;
  return isFunction(signature) ? signature : null;
}

function visit(node, file) {
  if ((ts.isCallExpression(node) && !isRequire(node)) || ts.isNewExpression(node)) {
    const callee = strip(node.expression);
    const target = resolve(node);
    const isOwn = target && own.has(target.getSourceFile().fileName);
    const root = (function first(each) { each = strip(each); return each.expression && !ts.isFunctionLike(each) ? first(each.expression) : each; })(callee);
    const of = ts.isIdentifier(root) ? checker.getSymbolAtLocation(root)?.declarations?.[0] : null;
    const isBuiltIn = of ? !own.has(of.getSourceFile().fileName) : ts.isLiteralExpression(root) || root.kind === ts.SyntaxKind.RegularExpressionLiteral;
    const kind = isOwn ? "own" : foreign(callee) ? "package" : target || isBuiltIn ? "built-in" : "unknown";
    const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : ts.isIdentifier(callee) ? callee.text : "";
    const line = file.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    const nameless = isOwn && target === callee; // a function that is called where it is written
    console.log(JSON.stringify({ file: path.relative(folder, file.fileName), line, name, kind: nameless ? "built-in" : kind, isGlobal: Boolean(isBuiltIn), to: isOwn && !nameless ? place(target) : null }));
  }
  ts.forEachChild(node, (child) => visit(child, file));
}

for (const file of program.getSourceFiles()) if (own.has(file.fileName)) visit(file, file);
