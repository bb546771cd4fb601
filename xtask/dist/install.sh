#!/bin/sh
# Installs Refrain @VERSION@ for this user: sh install.sh [FOLDER]. FOLDER is ~/.local by default.
set -eu
to=${1:-$HOME/.local}
base=${REFRAIN_BASE_URL:-@BASE@}
name=refrain-@VERSION@-@TARGET@
case "$(uname -s) $(uname -m)" in
    "Linux x86_64") ;;
    *) echo "refrain: there is no binary for $(uname -s) $(uname -m); build it with cargo" >&2; exit 1 ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$name.tar.gz" SHA256SUMS; do
    if [ -n "$base" ]; then
        curl --fail --silent --show-error --location --output "$scratch/$file" "$base/$file"
    else
        cp "$(dirname "$0")/$file" "$scratch/$file"
    fi
done
(cd "$scratch" && grep " $name.tar.gz\$" SHA256SUMS | sha256sum --check --quiet -)
tar --extract --gzip --file "$scratch/$name.tar.gz" --directory "$scratch"
mkdir -p "$to"
cp -R "$scratch/$name/bin" "$scratch/$name/share" "$to/"
echo "refrain @VERSION@ is in $to/bin. Try: $to/bin/refrain demo"
case ":$PATH:" in *":$to/bin:"*) ;; *) echo "Add $to/bin to your PATH." ;; esac
