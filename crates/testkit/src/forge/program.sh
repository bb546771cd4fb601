#!/usr/bin/env bash
# Stands in for gh and glab: `auth status` and `api` with the flags that Refrain gives them, one request on loopback each.
# What it prints and how it ends is as theirs; everything else is refused as an unknown flag would be.
export LC_ALL=C
name=${0##*/}
login() { echo "To get started with $name, please run:  $name auth login" >&2; exit "$1"; }
[ "$1" = auth ] && [ "$2" = status ] && [ "$3" = --hostname ] && {
    [ "$4" = "$FORGE_HOST" ] && [ "$name" = "$FORGE_PROGRAM" ] && [ ! -e "$FORGE_RULES/logged-out" ] || login 1
    exit 0
}
[ "$1" = api ] || { echo "unknown command \"$1\" for \"$name\"" >&2; exit 1; }
shift
method=GET include= input= headers= endpoint=
while [ $# -gt 0 ]; do
    case $1 in
        --hostname) host=$2; shift 2 ;;
        --method) method=$2; shift 2 ;;
        --header) headers+="$2"$'\r\n'; shift 2 ;;
        --include) include=1; shift ;;
        --input) [ "$2" = - ] || exit 1; input=$(cat); shift 2 ;;
        --) endpoint=$2; [ $# = 2 ] || { echo "accepts 1 arg(s)" >&2; exit 1; }; break ;;
        *) echo "unknown flag: $1" >&2; exit 1 ;;
    esac
done
[ "$host" = "$FORGE_HOST" ] && [ "$name" = "$FORGE_PROGRAM" ] && [ ! -e "$FORGE_RULES/logged-out" ] || login 4
{ exec 3<>"/dev/tcp/127.0.0.1/$FORGE_PORT"; } 2>/dev/null || { echo "error connecting to $host" >&2; exit 1; }
printf '%s /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%sContent-Length: %s\r\n\r\n%s' \
    "$method" "$endpoint" "$host" "$headers" "${#input}" "$input" >&3 2>/dev/null
read -r first <&3 || { echo "Request to \"https://$host/$endpoint\": unexpected EOF" >&2; exit 1; }
[ "$include" ] && printf '%s\n' "${first%$'\r'}"
length=0
while read -r line <&3 && [ "${line%$'\r'}" ]; do
    [ "$include" ] && printf '%s\n' "$line"
    case ${line,,} in content-length:*) length=${line#*:}; length=${length%$'\r'} ;; esac
done
[ "$include" ] && printf '\r\n'
body=$(cat <&3; echo x)
body=${body%x}
printf '%s' "$body"
[ "${#body}" -ge "$length" ] || { echo "unexpected EOF" >&2; exit 1; }
status=${first#* }
status=${status%% *}
[ "$status" -lt 300 ] || { echo "$name: HTTP $status" >&2; exit 1; }
case $endpoint-$body in graphql-*'"errors"'*) echo "$name: GraphQL" >&2; exit 1 ;; esac
