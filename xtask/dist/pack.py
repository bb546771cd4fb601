"""Packs a built binary: python3 pack.py BINARY OUT [BASE_URL]

Writes a tarball, a Debian package, a Python wheel, an npm package, an install script, an SBOM and checksums into the
folder OUT. BASE_URL is where the install script downloads from; without it, it reads the folder that it lies in.
`cargo xtask dist` runs this. It needs dpkg-deb and npm; without one of them that package is left out, visibly.
"""

import base64
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = "x86_64-unknown-linux-gnu"
LICENCES = ["LICENSE-MIT", "LICENSE-APACHE"]


def output(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def metadata():
    return json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET))


def stage(binary, folder):
    """The files that every package has."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(binary, folder / "bin/refrain")
    (folder / "bin/refrain").chmod(0o755)
    subprocess.run([binary, "man", str(folder / "share/man/man1")], check=True)
    for shell, path in {
        "bash": "share/bash-completion/completions/refrain",
        "zsh": "share/zsh/site-functions/_refrain",
        "fish": "share/fish/vendor_completions.d/refrain.fish",
    }.items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(output(binary, "completions", shell))
    (folder / "share/doc/refrain").mkdir(parents=True)
    for name in [*LICENCES, "README.md", "CHANGELOG.md"]:
        shutil.copy(ROOT / name, folder / "share/doc/refrain")


def tarball(files, out, version):
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        return entry

    name = f"refrain-{version}-{TARGET}"
    with tarfile.open(out / f"{name}.tar.gz", "w:gz") as tar:
        tar.add(files, name, filter=plain)


def debian(files, out, version, package):
    root = files.parent / "debian"
    shutil.copytree(files, root / "usr")
    for page in (root / "usr/share/man/man1").iterdir():
        subprocess.run(["gzip", "--best", "--no-name", str(page)], check=True)
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        f"Package: refrain\nVersion: {version}\nArchitecture: amd64\nMaintainer: The Refrain authors\n"
        f"Installed-Size: {size}\nDepends: libc6 (>= 2.31), git\nSection: devel\nPriority: optional\n"
        f"Description: {package['description']}\n"
    )
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", str(root), str(out / f"refrain_{version}_amd64.deb")],
        check=True, stdout=subprocess.DEVNULL,
    )


def wheel(files, out, version, package):
    tag = "py3-none-manylinux_2_31_x86_64"
    info = f"refrain-{version}.dist-info"
    entries = {
        f"refrain-{version}.data/scripts/refrain": (files / "bin/refrain").read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.4\nName: refrain\nVersion: {version}\nSummary: {package['description']}\n"
            f"License-Expression: {package['license']}\nDescription-Content-Type: text/markdown\n\n"
        ).encode() + (ROOT / "README.md").read_bytes(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: refrain xtask\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    for name in LICENCES:
        entries[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    record = ""
    for name, data in entries.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    entries[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(out / f"refrain-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, data)


def npm(files, out, version, package):
    folder = files.parent / "npm"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(files / "bin/refrain", folder / "bin/refrain")
    for name in [*LICENCES, "README.md"]:
        shutil.copy(ROOT / name, folder)
    manifest = {
        "name": "refrain", "version": version, "description": package["description"],
        "license": package["license"], "bin": {"refrain": "bin/refrain"}, "os": ["linux"], "cpu": ["x64"],
        "files": ["bin", *LICENCES],
    }
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    packed = output("npm", "pack", "--silent", "--pack-destination", str(out), cwd=folder).strip()
    (out / packed).rename(out / f"refrain-{version}-npm.tgz")


def bill_of_materials(out, version, data):
    """What is linked into the binary, as CycloneDX."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    packages = {package["id"]: package for package in data["packages"]}
    first = next(package["id"] for package in data["packages"] if package["name"] == "refrain")
    reached, waiting = set(), [first]
    while waiting:
        package = waiting.pop()
        if package not in reached:
            reached.add(package)
            for needed in nodes[package]["deps"]:
                if any(kind["kind"] is None for kind in needed["dep_kinds"]):
                    waiting.append(needed["pkg"])

    def component(package):
        name, number = package["name"], package["version"]
        found = {"type": "library", "bom-ref": package["id"], "name": name, "version": number,
                 "purl": f"pkg:cargo/{name}@{number}"}
        if package["license"]:
            found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        return found

    used = sorted((packages[id] for id in reached if id != first), key=lambda package: (package["name"], package["version"]))
    bill = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {**component(packages[first]), "type": "application"}},
        "components": [component(package) for package in used],
        "dependencies": [
            {"ref": id, "dependsOn": sorted({dep["pkg"] for dep in nodes[id]["deps"] if dep["pkg"] in reached})}
            for id in sorted(reached)
        ],
    }
    (out / f"refrain-{version}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")


def main(binary, out, base=""):
    binary, out = str(pathlib.Path(binary).resolve()), pathlib.Path(out).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    data = metadata()
    package = next(package for package in data["packages"] if package["name"] == "refrain")
    version = package["version"]
    with tempfile.TemporaryDirectory() as scratch:
        files = pathlib.Path(scratch) / "files"
        stage(binary, files)
        tarball(files, out, version)
        wheel(files, out, version, package)
        for program, pack in {"dpkg-deb": debian, "npm": npm}.items():
            if shutil.which(program):
                pack(files, out, version, package)
            else:
                print(f"note: no {program}; its package is left out", file=sys.stderr)
    bill_of_materials(out, version, data)
    script = (HERE / "install.sh").read_text()
    script = script.replace("@VERSION@", version).replace("@TARGET@", TARGET).replace("@BASE@", base)
    (out / "install.sh").write_text(script)
    (out / "install.sh").chmod(0o755)
    names = sorted(path.name for path in out.iterdir())
    sums = [f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (out / "SHA256SUMS").write_text("".join(sums))
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>10}  {path}")


main(*sys.argv[1:])
