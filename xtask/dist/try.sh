#!/usr/bin/env bash
# Installs each package of a folder into an empty home and runs the demo there: try.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tried=0

# demo NAME BINARY: the demo in a home that has nothing but the installed package.
demo() {
    local home=$scratch/$1
    [ -x "$home/$2" ] || { printf '%s: no program %s\n' "$1" "$2" >&2; exit 1; }
    env -i HOME="$home" PATH=/usr/local/bin:/usr/bin:/bin "$home/$2" demo --dir "$home/demo" >"$home/demo.log" 2>&1 ||
        { cat "$home/demo.log"; exit 1; }
    grep -q 'verified after' "$home/demo.log"
    printf 'ok  %s\n' "$1"
    tried=$((tried + 1))
}

(cd "$folder" && sha256sum --check --quiet SHA256SUMS)
for name in tarball script debian wheel npm; do mkdir "$scratch/$name"; done

tar --extract --gzip --strip-components 1 --file "$folder"/refrain-*.tar.gz --directory "$scratch/tarball"
test -s "$scratch/tarball/share/man/man1/refrain-start.1"
demo tarball bin/refrain

HOME=$scratch/script sh "$folder/install.sh" >/dev/null
demo script .local/bin/refrain

if ls "$folder"/*.deb >/dev/null 2>&1; then
    dpkg-deb --extract "$folder"/*.deb "$scratch/debian"
    demo debian usr/bin/refrain
fi
if python3 -m venv "$scratch/wheel/venv" 2>/dev/null; then
    "$scratch/wheel/venv/bin/pip" install --quiet --no-index "$folder"/*.whl
    demo wheel venv/bin/refrain
else
    printf 'note: no python3-venv; the wheel is not tried\n'
fi
if ls "$folder"/*-npm.tgz >/dev/null 2>&1; then
    npm install --silent --offline --no-audit --no-fund --global --prefix "$scratch/npm" "$folder"/*-npm.tgz
    demo npm bin/refrain
fi
printf '%d packages tried\n' "$tried"
