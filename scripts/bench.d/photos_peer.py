# The example photos.lua in Python: photos_peer.py DIR FILE
import hashlib
import json
import os
import sys


def files(folder):
    for entry in os.scandir(folder):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from files(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


folder, target = sys.argv[1:]
photos = []
for path in sorted(files(folder)):
    with open(path, "rb") as file:
        photos.append({"path": path, "sha256": hashlib.file_digest(file, "sha256").hexdigest()})
with open(target + ".tmp", "w") as file:
    json.dump(photos, file, indent=2)
    file.write("\n")
    file.flush()
    os.fsync(file.fileno())
os.replace(target + ".tmp", target)
