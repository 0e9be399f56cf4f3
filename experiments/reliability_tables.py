"""The tables of reliability: commands that were killed, files that were damaged."""

from measured import RESULTS, markdown, read

COUNTS = ("kills", "runs", "lost", "mixed", "different", "orphans", "left")


def kills() -> str:
    found = read(RESULTS / "reliability" / "kills.json")
    rows = []
    for name, case in found["cases"].items():
        both = case["two_at_once"]
        told = f"{both['worked']} works, {both['told_who_holds_the_lock']} is told"
        rows.append([name, *(str(case[key]) for key in COUNTS), told])
    header = ["command", "kills", "runs", "lost", "mixed", "different", "processes left", "files left", "two at once"]
    return markdown(header, [*rows, ["all", *(str(found["total"][key]) for key in COUNTS), ""]])


def fuzz() -> str:
    found = read(RESULTS / "reliability" / "fuzz.json")
    rows = []
    for name, kind in found["kinds"].items():
        failed = sum(failure["kind"] == name for failure in found["failures"])
        counts = [kind.get("accepted", 0), kind.get("refused", 0), failed, kind["longest_seconds"]]
        rows.append([name, *map(str, counts), str(kind["peak_megabytes"])])
    total = [sum(int(row[column]) for row in rows) for column in (1, 2, 3)]
    longest, peak = found["longest_seconds"], found["peak_megabytes"]
    header = ["file", "accepted", "a sentence", "anything else", "longest, s", "largest process, MB"]
    return markdown(header, [*rows, ["all", *map(str, [*total, longest, peak])]])
