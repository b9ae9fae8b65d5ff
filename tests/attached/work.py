"""A Python program for `check`: threads that work, until standard input ends."""

import json
import sys
import threading
import time
import zlib

ends = threading.Event()
errors = []
late = []


def works(seed):
    while not ends.is_set():
        value = {"list": list(range(seed, seed + 200)), "text": "x" * seed}
        if json.loads(zlib.decompress(zlib.compress(json.dumps(value).encode()))) != value:
            errors.append("contents")
        time.sleep(0.001)


def sleeps():
    while not ends.is_set():
        before = time.monotonic()
        time.sleep(0.001)
        passed = time.monotonic() - before
        if passed < 0.001:
            errors.append("a sleep was short")
        late.append((passed - 0.001) * 1000)


threads = [threading.Thread(target=works, args=(100 * number,)) for number in range(6)]
threads.append(threading.Thread(target=sleeps))
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
ends.set()
for thread in threads:
    thread.join()
late.sort()
print(f"errors {len(errors)}, late p99 {late[len(late) * 99 // 100]:.1f} max {late[-1]:.1f} ms")
