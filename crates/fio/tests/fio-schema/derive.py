#!/usr/bin/env python3
"""Derives the schema of fio's JSON from what the fio on PATH writes in many configurations.

    derive.py > schema.json

Each run is small (4 MiB, a second at most) and in a temporary directory. The schema has, for each object, its fields in
their order, which of them are always there, and the type of each (a number with a point is a `number`, without one an
`integer`). Objects whose names are data (options, percentiles, bins) are maps.
"""
import json
import os
import subprocess
import sys
import tempfile

MAPS = {"job options", "global options", "percentile", "bins"}

# What is run; F is a file of 4 MiB.
RUNS = [
    "--name=a F --rw=randrw --bs=4k --numjobs=2 --group_reporting --ioengine=libaio --iodepth=8 --direct=1"
    " --name=b F --rw=read --bs=64k --stonewall --name=c F --rw=randwrite",
    "--name=a F --rw=randrw --unified_rw_reporting=mixed",
    "--name=a F --rw=randrw --unified_rw_reporting=both",
    "--name=a F --rw=randread --slat_percentiles=1 --lat_percentiles=1 --percentile_list=50:99:99.9"
    " --ioengine=libaio --iodepth=4 --description=words",
    "--name=a F --rw=randread --ioengine=libaio --iodepth=16 --direct=1 --latency_target=300us"
    " --latency_window=50ms --latency_percentile=90 --time_based --runtime=1",
    "--name=a F --rw=randread --ss=iops:50% --ss_dur=2 --time_based --runtime=4 --rate_iops=1000",
    "--name=a F --rw=randread --ss=bw_slope:1000 --ss_dur=2 --time_based --runtime=3 --rate_iops=1000",
    "--name=a F --rw=randwrite --fsync=8 --end_fsync=1 --io_size=512k",
    "--name=a --ioengine=null --size=4m --rw=randtrimwrite",
    "--name=a --ioengine=null --size=1g --rw=rw --bs=16k --time_based --runtime=1 --iodepth=16",
    "--name=a F --rw=randread --gtod_reduce=1",
    "--name=a F --rw=randread --disable_slat=1 --disable_clat=1 --ioengine=libaio --iodepth=4",
    "--name=a --filename=/dev/full --size=1m --rw=write --continue_on_error=all",
    "--name=a --filename=/dev/full --size=1m --rw=write --name=b F --rw=read",
    "--name=a F --rw=randread --clat_percentiles=0",
    "--name=a F --rw=randread --disk_util=0 --significant_figures=6 --unit_base=1 --kb_base=1000",
    "--name=a --ioengine=null --size=4m --rw=randtrimwrite --iodepth=4 --slat_percentiles=1 --lat_percentiles=1",
    "--name=a --ioengine=null --size=4m --rw=randrw --iodepth=4 --slat_percentiles=1 --lat_percentiles=1"
    " --unified_rw_reporting=both",
    "JOBFILE",
]
JOB_FILE = "[global]\nfilename={file}\nsize=4m\nrw=randrw\n[one]\nrate_iops=2000\n[two]\nstonewall\nbs=8k\n[three]\n"


def results(directory):
    """The parsed output of each run, as JSON and as JSON+."""
    file = os.path.join(directory, "f")
    job = os.path.join(directory, "job.fio")
    with open(job, "w", encoding="utf-8") as out:
        out.write(JOB_FILE.format(file=file))
    for run in RUNS:
        words = [job] if run == "JOBFILE" else []
        for word in [] if run == "JOBFILE" else run.split():
            words += [f"--filename={file}", "--size=4m"] if word == "F" else [word]
        for form in ["json", "json+"]:
            done = subprocess.run(
                ["fio", f"--output-format={form}", *words], cwd=directory, capture_output=True, text=True, check=False
            )
            # Stray lines may stand before the result.
            text = done.stdout[done.stdout.index("{\n"):]
            yield json.JSONDecoder().raw_decode(text)[0]


def merged_order(order, keys):
    """Keys in an order that holds for all objects seen: a new one stands before the known one that follows it."""
    place = 0
    for number, key in enumerate(keys):
        if key in order:
            found = order.index(key)
            if found < place:
                sys.exit(f"fio writes {key!r} in different places")
            place = found + 1
        else:
            following = [order.index(later) for later in keys[number + 1:] if later in order]
            place = min(following, default=len(order))
            order.insert(place, key)
            place += 1


def learn(schema, value, name=""):
    """Adds what a value shows to what is known of its place."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}
    kind = kinds[type(value)]
    if schema.setdefault("type", kind) != kind:
        sys.exit(f"{name!r} is {kind} and {schema['type']}")
    if kind == "object" and name in MAPS:
        for one in value.values():
            learn(schema.setdefault("additionalProperties", {}), one)
    elif kind == "object":
        keys = list(value)
        if "required" in schema:
            schema["required"] = [key for key in schema["required"] if key in value]
        else:
            schema["required"] = keys
        merged_order(schema.setdefault("order", []), keys)
        for key, one in value.items():
            learn(schema.setdefault("properties", {}).setdefault(key, {}), one, key)
    elif kind == "array":
        for one in value:
            learn(schema.setdefault("items", {}), one)


def main():
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    schema = {}
    with tempfile.TemporaryDirectory() as directory:
        for result in results(directory):
            learn(schema, result)
    json.dump({"derived from": version, **schema}, sys.stdout, indent=1)
    print()


main()
