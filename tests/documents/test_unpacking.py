import stat

import pytest
from support.zips import locked_zip, lying_zip, zip_named, zip_of

from kgot_lab.documents.archives import UnpackLimits, ZipMember, unpacked, zip_members
from kgot_lab.errors import BadInput

USUAL = UnpackLimits()


@pytest.fixture
def unpack(tmp_path):
    """Unpacks some bytes; afterwards nothing stands anywhere but where it may."""

    def run(data: bytes, limits: UnpackLimits = USUAL) -> dict[str, bytes]:
        (tmp_path / "a.zip").write_bytes(data)
        files = unpacked(tmp_path / "a.zip", tmp_path / "out" / "a", limits)
        return {file.relative_to(tmp_path / "out" / "a").as_posix(): file.read_bytes() for file in files}

    yield run
    assert {path.name for path in tmp_path.iterdir()} <= {"a.zip", "out"}
    assert [path.name for path in tmp_path.glob("out/*")] in ([], ["a"])


def test_the_files_of_a_zip_file_are_unpacked(unpack, tmp_path):
    files = {"b.txt": b"b", "in/deep/a.txt": "naïve".encode(), "in/ü.txt": b""}
    assert unpack(zip_of(files)) == files
    assert zip_members(tmp_path / "a.zip")[1] == ZipMember("in/deep/a.txt", 6)
    with pytest.raises(BadInput, match="is there already"):
        unpack(zip_of(files))


ESCAPES = [
    "../out.txt", "in/../../out.txt", "/etc/out.txt", "..", ".", "in//x.txt", "./x.txt", "..\\out.txt", "in\\x.txt", "C:\\out.txt",
    "C:out.txt", "c:/x", "\\\\server\\share", "x.txt:stream", "a\x01b", "line\nbreak", "CON", "in/nul.txt", "com1.log",
    "trailing.", "trailing ", " leading", "x" * 250, "/".join("d" * 20),
]  # fmt: skip


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_that_leads_elsewhere_or_means_something_else_elsewhere_is_refused(unpack, name):
    with pytest.raises(BadInput, match="nothing was unpacked"):
        unpack(zip_named(name))


def test_a_name_that_reads_otherwise_than_it_is_is_refused(unpack):
    with pytest.raises(BadInput, match="means different things"):
        unpack(zip_of({"a\u202etxt.exe": b"x"}))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_what_is_no_regular_file_are_refused(unpack, kind):
    with pytest.raises(BadInput, match=r"which is (a link|no regular file)"):
        unpack(zip_of({"a": "/etc/passwd"}, mode=kind | 0o777))


@pytest.mark.parametrize("names", [("a.txt", "A.TXT"), ("a", "a/b"), ("in/A", "in/a/b")])
def test_two_files_that_would_be_one_are_refused(unpack, names):
    with pytest.raises(BadInput, match="two files of one name"):
        unpack(zip_of(dict.fromkeys(names, b"x")))


@pytest.mark.parametrize(
    ("data", "limits", "message"),
    [
        (
            zip_of({f"{n}.txt": b"x" for n in range(11)}),
            UnpackLimits(files=10),
            "holds 11 files; the most is 10",
        ),
        (zip_of({"a": bytes(600), "b": bytes(600)}), UnpackLimits(total_bytes=1000), "unpacks to more than"),
        (zip_of({"zeros": bytes(3_000_000)}), USUAL, "far more than it should"),
        (lying_zip(700_001, 10), UnpackLimits(total_bytes=1000), "cannot be unpacked|far more|damaged"),
        (zip_of({}), USUAL, "is empty"),
        (b"no zip file", USUAL, "is not a zip file"),
        (b"", USUAL, "is not a zip file"),
        (zip_of({"a": b"some text, long enough to be packed" * 20})[:-60], USUAL, "is not a zip file"),
        (locked_zip(), USUAL, "locked with a password"),
    ],
)
def test_what_would_fill_the_disk_or_cannot_be_read_is_refused(unpack, data, limits, message):
    with pytest.raises(BadInput, match=message):
        unpack(data, limits)


def test_what_packs_well_by_nature_is_unpacked(unpack):
    table = b"0,0,0\n" * 100_000  # packs to less than a five hundredth, and is no bomb
    assert unpack(zip_of({"zeros.csv": table})) == {"zeros.csv": table}


def test_a_damaged_member_leaves_nothing_behind(unpack):
    good = zip_of({"first.txt": b"fine", "second.txt": bytes(range(256)) * 40})
    middle = good.index(b"second.txt") + 40
    with pytest.raises(BadInput, match=r"'second\.txt'.*nothing was unpacked"):
        unpack(good[:middle] + b"\xff" * 20 + good[middle + 20 :])
