"""Made-up Chinese patents, by rule: sentences from a small grammar, a subject a patent."""

import random

THINGS = ("水泵", "风扇", "轴承", "阀门", "齿轮", "电机", "传感器", "滤网", "支架", "导轨", "弹簧", "密封圈")
PARTS = ("壳体", "底座", "盖板", "连杆", "控制器", "进水口", "出风口", "卡槽", "螺栓", "隔板", "线圈", "外罩")
DEEDS = ("固定连接于", "转动安装在", "滑动设置于", "电连接", "嵌套在", "焊接在", "抵接于", "贯穿")
ENDS = ("从而降低噪音", "以便于拆卸", "进而提高效率", "避免发生泄漏", "使结构更加紧凑", "因此延长使用寿命")
OLD, NEW = ("机械", "人工", "手动", "继电器"), ("智能", "算力", "云端", "大模型")
HEADING = "技术领域"


def sentences(name, count, *, new=False):
    """So many sentences of one patent; a new one speaks of other matters here and there."""
    rng = random.Random(name)
    found = []
    for _ in range(count):
        pick = rng.choice
        word = pick(NEW if new else OLD) if rng.random() < 0.3 else ""
        found.append(
            f"所述{pick(THINGS)}的{word}{pick(PARTS)}{pick(DEEDS)}第{rng.randrange(1, 90)}{pick(PARTS)}，{pick(ENDS)}。"
        )
    return found


def text(name, count=30, *, new=False):
    """The text of one patent: a heading, and lines of three sentences."""
    found = sentences(name, count, new=new)
    lines = ["".join(found[place : place + 3]) for place in range(0, count, 3)]
    return "\n".join([HEADING, *lines])


def google(name, *, published, priority, count=30, new=False):
    """A page as Google Patents lays it out, with a cited patent of another time."""
    paragraphs = "".join(f"<p>{line}</p>" for line in text(name, count, new=new).split("\n"))
    return (
        f"<!doctype html><html><head><title>{name}</title></head><body><article itemscope>"
        f'<dd><time itemprop="priorityDate" datetime="{priority}">{priority}</time></dd>'
        f'<dd><time itemprop="publicationDate" datetime="{published}">{published}</time></dd>'
        f'<section itemprop="description"><h2>Description</h2>{paragraphs}</section>'
        '<table><tr itemprop="backwardReferences" itemscope><td itemprop="publicationDate">2001-01-01</td>'
        "<td>被引专利</td></tr></table></article></body></html>"
    )


def folder(place, pages=12):
    """So many old pages and as many new ones, and one of each kind that cannot be taken."""
    place.mkdir()
    for i in range(pages):
        old = google(f"CN{i}A", published=f"20{10 + i % 12}-03-0{1 + i % 9}", priority="2009-01-01")
        new = google(f"CN{i + 500}A", published="2024-11-01", priority=f"2024-0{4 + i % 6}-11", new=True)
        (place / f"CN{i}A.html").write_text(old, encoding="utf-8")
        (place / f"CN{i + 500}A.html").write_text(new, encoding="utf-8")
    odd = {
        "between.html": google("between", published="2023-06-01", priority="2022-01-01"),
        "contradiction.html": google("contradiction", published="2019-06-01", priority="2024-06-01"),
        "copy.html": google("CN0A", published="2021-06-01", priority="2020-06-01"),
        "copy_of_old.html": google("CN1A", published="2024-12-01", priority="2024-06-01"),
        "short.html": google("short", published="2019-06-01", priority="2018-06-01", count=3),
        "undated.txt": text("undated"),
        "vague.txt": "公开日：2022-2023\n" + text("vague"),
        "notes.md": "not a page",
    }
    near = google("CN2A", published="2022-06-01", priority="2020-06-01")
    near = near.replace("</p></section>", "新增。</p></section>")
    english = '<section itemprop="description"><p>' + "All of this is in English. " * 60 + "</p></section>"
    odd |= {"near.html": near, "english.html": '<meta name="citation_date" content="2019-01-01">' + english}
    for name, content in odd.items():
        (place / name).write_text(content, encoding="utf-8")
    return place
