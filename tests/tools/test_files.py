"""The tools for files: reading any kind, asking about one, unpacking, looking at pictures, writing down
speech.
"""

import base64
import gc
import io
import shutil
import threading
import wave

import pytest
from support.web_site import Sent, web_site
from support.zips import zip_named, zip_of

from kgot_lab.documents.archives import UnpackLimits
from kgot_lab.errors import BadInput, NotInstalled, OverBudget, ToolFailed
from kgot_lab.llm.budget import Budget, Spending
from kgot_lab.llm.recorded import Scripted
from kgot_lab.tools.files import FileCollection, extract_zip
from kgot_lab.tools.media import Transcriber, data_url, image_question, inspect_file, max_speech_seconds
from kgot_lab.tools.web.fetching import FetchSettings, WebFetcher
from kgot_lab.types import Prompt, Reply

pytest.importorskip("markitdown")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def workbook() -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Lamps"
    for row in (("Light", "Lit"), ("Grey Point", 1871)):
        book.active.append(row)
    book.create_sheet("Keepers").append(("Ines Marlow",))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def slides() -> bytes:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[0])
    slide.shapes.title.text, slide.placeholders[1].text = "Grey Point", "Lit in 1871"
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


@pytest.fixture
def shelf(tmp_path):
    """A shelf with a file of each kind."""
    files = {
        "lamps.xlsx": workbook(), "talk.pptx": slides(), "page.html": b"<h1>Grey Point</h1><p>Lit in <b>1871</b>.</p>",
        "notes.txt": b"Lit in 1871.", "data.json": b'{"lit": 1871}', "rows.csv": b"light,lit\nGrey Point,1871\n",
        "feed.xml": b"<lit>1871</lit>", "code.py": b"lit = 1871\n",
        "photo.png": PNG, "talk.mp3": b"ID3 sound", "film.mkv": b"\x1aE\xdf\xa3", "zeros.bin": bytes(100), "fake.xlsx": b"no workbook",
        "more.zip": zip_of({"in/a.txt": "inside", "b.zip": zip_of({"deep.txt": "deeper"})}),
    }  # fmt: skip
    (tmp_path / "files").mkdir()
    for name, data in files.items():
        (tmp_path / "files" / name).write_bytes(data)
    (tmp_path / "secret.txt").write_text("secret")
    return FileCollection([tmp_path / "files" / name for name in files], unpack_into=tmp_path / "unpacked")


# --- inspect_file ---


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("lamps.xlsx", "## Lamps\n\n| Light | Lit |\n| Grey Point | 1871 |"), ("lamps.xlsx", "Ines Marlow"),
        ("talk.pptx", "# Grey Point\nLit in 1871"), ("page.html", "# Grey Point\n\nLit in **1871**."),
        ("notes.txt", "Lit in 1871."), ("data.json", '{"lit": 1871}'), ("rows.csv", "Grey Point,1871"),
        ("feed.xml", "<lit>1871</lit>"), ("code.py", "lit = 1871"), ("more.zip", "A zip file with 2 files:\nin/a.txt (6 bytes)\nb.zip ("),
    ],
)  # fmt: skip
def test_a_file_of_any_kind_is_read(shelf, file, text):
    result = inspect_file(shelf)(file=file)
    assert text in result.text and result.sources[0].id == file and result.sources[0].text == result.text


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("photo.png", "a picture holds no text"), ("talk.mp3", "where the environment variable OPENAI_API_KEY is set"),
        ("film.mkv", "films are not read"), ("zeros.bin", "binary, not text"), ("fake.xlsx", "not an Excel file, whatever its name says"),
        ("gone.txt", r"no file 'gone\.txt'; there are: code\.py, data\.json"), ("../secret.txt", "there is no file"),
        ("/etc/passwd", "there is no file"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why_and_what_would_help(shelf, file, message):
    with pytest.raises(ToolFailed, match=f"inspect_file: .*{message}"):
        inspect_file(shelf)(file=file)


def test_a_question_is_answered_from_the_first_tokens_of_the_file(shelf):
    llm = Scripted(["In 1871."])
    result = inspect_file(shelf, llm, max_tokens=3)(file="rows.csv", question="When was it lit?")
    assert result.text == "In 1871.\n(From its first 3 of about 7 tokens.)" and len(result.usage) == 1
    asked = llm.asked[0].messages[-1].text
    assert "Question: When was it lit?" in asked and "light,lit" in asked and "1871" not in asked
    assert result.sources[0].text == "light,lit\nGr …", "what was not read is no source"


def test_without_a_model_there_is_no_question_to_ask(shelf):
    assert list(inspect_file(shelf).arguments["properties"]) == ["file"]
    tool = inspect_file(shelf, Scripted([" "]))
    assert tool.arguments["required"] == ["file"]
    assert tool(file="notes.txt", question=" ").text == "Lit in 1871."
    with pytest.raises(ToolFailed, match="said nothing") as caught:
        tool(file="notes.txt", question="x")
    assert len(caught.value.usage) == 1


def test_a_budget_that_is_used_up_ends_the_run(shelf):
    def broke(prompt: Prompt) -> Reply:
        raise OverBudget("nothing left")

    broke.name = "broke"
    with pytest.raises(OverBudget):
        inspect_file(shelf, broke)(file="notes.txt", question="x")


def test_the_tool_names_its_files_in_one_line(tmp_path):
    for number in range(60):
        (tmp_path / f"{number:02}\n.txt").write_text("x")
    about = inspect_file(FileCollection(sorted(tmp_path.iterdir()))).description
    assert "\n" not in about and about.endswith("49 .txt and 10 more.")


# --- the shelf and zip files ---


def test_what_was_in_a_zip_file_is_read_by_its_name_and_zip_files_in_it_too(shelf):
    unzip, read = extract_zip(shelf), inspect_file(shelf)
    assert unzip(file="more.zip").text == "more.zip holds 2 files:\nmore.zip/b.zip\nmore.zip/in/a.txt"
    assert unzip(file="more.zip").text == unzip(file="more.zip").text
    assert unzip(file="more.zip/b.zip").text == "more.zip/b.zip holds 1 file:\nmore.zip/b.zip/deep.txt"
    assert (read(file="more.zip/in/a.txt").text, read(file="more.zip/b.zip/deep.txt").text) == (
        "inside",
        "deeper",
    )


def test_zip_files_in_zip_files_end_somewhere(tmp_path):
    data = b"bottom"
    for depth in range(6):
        data = zip_of({f"{depth}.zip" if depth else "bottom.txt": data})
    (tmp_path / "top.zip").write_bytes(data)
    shelf, name = FileCollection([tmp_path / "top.zip"], unpack_into=tmp_path / "out"), "top.zip"
    with pytest.raises(ToolFailed, match="more than 3 deep"):
        for _ in range(9):
            (name,) = shelf.unpack(name)
    assert name.count(".zip") == 4


def test_a_folder_that_nobody_named_goes_with_the_shelf(tmp_path):
    (tmp_path / "a.zip").write_bytes(zip_of({"x.txt": "x"}))
    shelf = FileCollection([tmp_path / "a.zip"])
    shelf.unpack("a.zip")
    file = shelf.path("a.zip/x.txt")
    assert file.read_text() == "x" and tmp_path not in file.parents
    del shelf
    gc.collect()
    assert not file.exists()


def test_what_an_earlier_shelf_unpacked_is_taken_up_while_it_is_what_the_zip_file_holds(tmp_path):
    (tmp_path / "a.zip").write_bytes(zip_of({"in/x.txt": "x", "y.txt": "y"}))

    def again() -> list[str]:
        return FileCollection([tmp_path / "a.zip"], unpack_into=tmp_path / "out").unpack("a.zip")

    assert again() == again() == ["a.zip/in/x.txt", "a.zip/y.txt"]
    unpacked = tmp_path / "out" / "a.zip.unpacked"
    for harm in (
        lambda: (unpacked / "y.txt").write_text("z"),
        lambda: (unpacked / "y.txt").write_text("longer"),
        lambda: (unpacked / "more.txt").write_text("more"),
        lambda: (unpacked / "y.txt").rename(unpacked / "w.txt"),
        lambda: (
            (tmp_path / "y").write_text("y"),
            (unpacked / "y.txt").unlink(),
            (unpacked / "y.txt").symlink_to(tmp_path / "y"),
        ),
    ):
        harm()
        with pytest.raises(
            ToolFailed, match=r"is there already and holds something else than a\.zip; remove it"
        ):
            again()
        shutil.rmtree(unpacked)
        again()


@pytest.mark.parametrize(
    "paths, message",
    [("a.txt", "'paths' is a list"), ([], "give at least one file"), ([3], "'paths' is a list")],
)
def test_a_shelf_takes_a_list_of_files(paths, message):
    with pytest.raises(BadInput, match=message):
        FileCollection(paths)


def test_a_zip_file_that_means_harm_is_a_failure_of_the_tool(tmp_path):
    (tmp_path / "bad.zip").write_bytes(zip_named("../../out.txt"))
    shelf = FileCollection([tmp_path / "bad.zip"], unpack_into=tmp_path / "out")
    with pytest.raises(ToolFailed, match="leads elsewhere; nothing was unpacked"):
        extract_zip(shelf)(file="bad.zip")
    assert shelf.names == ["bad.zip"]


# --- pictures and speech ---


def test_a_question_about_a_picture_goes_to_a_model_that_sees_with_the_picture(shelf):
    llm = Scripted(["A lamp."])
    result = image_question(llm, shelf)(image="photo.png", question="What is it?")
    (_, message) = llm.asked[0].messages
    assert message.text == "What is it?"
    assert message.images == (f"data:image/png;base64,{base64.b64encode(PNG).decode()}",)
    assert result.text == "A lamp." and len(result.usage) == 1 and result.sources[0].id == "photo.png"


def test_a_picture_of_the_web_is_fetched_with_the_same_manners(shelf):
    with web_site({"/lamp.png": Sent(PNG, "image/png")}) as site:
        fetch = WebFetcher(FetchSettings(private_hosts={site.host})).fetch
        tool = image_question(Scripted(["A lamp."]), shelf, fetch=fetch)
        assert tool(image=f"{site.url}/lamp.png", question="What?").text == "A lamp."
        with pytest.raises(ToolFailed, match="image_question: HTTP 404"):
            tool(image=f"{site.url}/none.png", question="What?")
        with pytest.raises(ToolFailed, match="private address"):
            image_question(Scripted([]), shelf, fetch=WebFetcher().fetch)(
                image=f"{site.url}/lamp.png", question="What?"
            )
        alone = image_question(Scripted(["A lamp."]), None, fetch=fetch)
        assert alone(image=f"{site.url}/lamp.png", question="What?").text == "A lamp."
        assert "Files" not in alone.description
        with pytest.raises(ToolFailed, match="not the address of a picture on the web"):
            alone(image="lamp.png", question="What?")
    with pytest.raises(ToolFailed, match="there is no file"):
        image_question(Scripted([]), shelf)(image=f"{site.url}/lamp.png", question="What?")
    with pytest.raises(BadInput, match="a FileCollection, not None"):
        image_question(Scripted([]), None)


@pytest.mark.parametrize("file", ["notes.txt", "more.zip", "talk.mp3", "/etc/passwd"])
def test_what_is_no_picture_is_not_sent(shelf, file):
    with pytest.raises(ToolFailed, match=r"is no PNG, JPEG, GIF or WebP picture|there is no file"):
        image_question(Scripted([]), shelf)(image=file, question="What?")


def test_pictures_are_known_by_their_bytes():
    kinds = [
        data_url(data, "x")[:16] for data in (b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\x00\x00\x00\x00WEBPVP8 ")
    ]
    assert kinds == ["data:image/jpeg;", "data:image/gif;b", "data:image/webp;"]
    with pytest.raises(ToolFailed, match="larger than 20 MB"):
        data_url(b"GIF89a" + bytes(20_000_000), "x")


@pytest.mark.parametrize(
    ("sent", "message", "again"),
    [
        (
            Sent({"error": {"message": "key s3cret-key is wrong"}}, status=401),
            "HTTP 401: .*key … is wrong",
            False,
        ),
        (Sent({"error": {"message": "slow"}}, status=429), "HTTP 429", True),
        (Sent({"text": "  "}), "nothing is said", False),
    ],
)
def test_speech_that_cannot_be_written_down_says_why_without_the_key(shelf, sent, message, again):
    with web_site({"/v1/audio/transcriptions": sent}) as site:
        transcribe = Transcriber("s3cret-key", address=f"{site.url}/v1")
        with pytest.raises(ToolFailed, match=message) as caught:
            inspect_file(shelf, transcribe=transcribe)(file="talk.mp3")
    assert caught.value.again == again and "s3cret" not in str(caught.value) + repr(transcribe)


def test_speech_goes_to_openai_wherever_the_environment_points(shelf, monkeypatch):
    with web_site({"/v1/audio/transcriptions": Sent({"text": "caught"})}) as site:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{site.url}/v1")
        # so that nothing leaves this computer: the site is no proxy
        monkeypatch.setenv("HTTPS_PROXY", site.url)
        with pytest.raises(ToolFailed, match="no connection to"):
            inspect_file(shelf, transcribe=Transcriber("key"))(file="talk.mp3")
        assert not any("transcriptions" in request.path for request in site.seen)


def wav(path, seconds):
    """A recording of silence."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(100)
        file.writeframes(bytes(100 * seconds))
    return path


def heard(seconds, text="The lamp was lit."):
    """What a service answers that says how long it listened."""
    return {
        "/v1/audio/transcriptions": Sent({"text": text, "usage": {"type": "duration", "seconds": seconds}})
    }


def test_speech_is_paid_for_by_the_minute_the_service_tells_and_of_the_budget_of_the_models(tmp_path):
    spending = Spending(Budget(dollars=1))
    with web_site(heard(90)) as site:
        transcribe = Transcriber("key", address=f"{site.url}/v1", price=0.006, spending=spending)
        result = inspect_file(FileCollection([wav(tmp_path / "talk.wav", 120)]), transcribe=transcribe)(
            file="talk.wav"
        )
    assert [usage.cost for usage in result.usage] == [pytest.approx(0.009)] and result.usage[0].seconds > 0
    assert spending.spent.cost == pytest.approx(0.009) and spending.calls == 1 and spending.spent.seconds > 0


def test_a_recording_that_could_pass_the_budget_is_not_sent_and_other_tools_go_on(tmp_path):
    spending = Spending(Budget(dollars=0.01))
    with web_site(heard(120)) as site:
        transcribe = Transcriber("key", address=f"{site.url}/v1", price=0.006, spending=spending)
        with pytest.raises(
            ToolFailed, match=r"talk\.wav is not written down: 0 of 0\.01 dollars are spent and .* 0\.012"
        ) as caught:
            transcribe(wav(tmp_path / "talk.wav", 120))
        assert not caught.value.again and site.seen == [] and spending.calls == 0
        assert transcribe(wav(tmp_path / "short.wav", 60)).text == "The lamp was lit."


def test_speech_without_words_and_a_service_that_does_not_answer_are_counted_too(tmp_path):
    talk, spending = wav(tmp_path / "talk.wav", 60), Spending(Budget(dollars=1))
    with web_site(heard(60, "")) as site:
        transcribe = Transcriber("key", address=f"{site.url}/v1", price=0.006, spending=spending)
        with pytest.raises(ToolFailed, match="nothing is said") as caught:
            inspect_file(FileCollection([talk]), transcribe=transcribe)(file="talk.wav")
        assert [usage.cost for usage in caught.value.usage] == [pytest.approx(0.006)]
    given_up = threading.Event()
    with web_site({"/v1/audio/transcriptions": lambda _: Sent({"text": str(given_up.wait(60))})}) as site:
        with pytest.raises(ToolFailed, match="no answer within"):
            Transcriber("key", address=f"{site.url}/v1", price=0.006, spending=spending, seconds=0.2)(talk)
        given_up.set()
    assert spending.unanswered == pytest.approx(0.006) and spending.spent.cost == pytest.approx(0.012)


def test_how_long_a_recording_can_be_is_said_by_its_head_or_reckoned_from_its_bytes(tmp_path):
    assert max_speech_seconds(wav(tmp_path / "talk.wav", 7)) == 7
    (tmp_path / "talk.mp3").write_bytes(bytes(8_000))
    (tmp_path / "broken.wav").write_bytes(bytes(8_000))
    assert max_speech_seconds(tmp_path / "talk.mp3") == max_speech_seconds(tmp_path / "broken.wav") == 8


def test_a_missing_converter_is_named(shelf, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "markitdown", None)
    with pytest.raises(
        ToolFailed,
        match=r"lamps\.xlsx: this needs markitdown, which reads \.xlsx files: pip install 'kgot_lab\[lab\]'",
    ) as caught:
        inspect_file(shelf)(file="lamps.xlsx")
    assert isinstance(caught.value.__cause__, NotInstalled)


def test_zip_files_together_may_fill_only_so_much(tmp_path):
    for name in ("a.zip", "b.zip"):
        (tmp_path / name).write_bytes(zip_of({"x.txt": bytes(600)}))
    shelf = FileCollection(
        [tmp_path / "a.zip", tmp_path / "b.zip"],
        unpack_into=tmp_path / "out",
        limits=UnpackLimits(total_bytes=1000),
    )
    assert shelf.unpack("a.zip") == ["a.zip/x.txt"]
    with pytest.raises(ToolFailed, match="unpacks to more than"):
        shelf.unpack("b.zip")


def test_speech_is_written_down(shelf):
    with web_site({"/v1/audio/transcriptions": Sent({"text": "The lamp was lit."})}) as site:
        tool = inspect_file(shelf, transcribe=Transcriber("key", address=f"{site.url}/v1"))
        assert tool(file="talk.mp3").text == "The lamp was lit." and tool(file="talk.mp3").usage[0].cost == 0
    with pytest.raises(ToolFailed, match="no connection to") as caught:
        tool(file="talk.mp3")
    assert caught.value.again


def test_a_price_that_is_not_known_is_refused_where_dollars_are_limited():
    dollars = Spending(Budget(dollars=1))
    assert Transcriber("key", spending=dollars).price == 0.006
    assert Transcriber("key", model="other", spending=Spending(Budget(calls=1))).price is None
    for unknown in ({"model": "other"}, {"address": "http://127.0.0.1:9/v1"}):
        with pytest.raises(
            BadInput, match="charges for writing down speech is not known, so dollars cannot be limited"
        ):
            Transcriber("key", **unknown, spending=dollars)
