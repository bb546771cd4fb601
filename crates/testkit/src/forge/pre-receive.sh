#!/bin/sh
# What a forge has against a push. A connection is cut off by ending the git that serves it.
rules=@RULES@
[ -e "$rules/cut-off-before" ] && { rm "$rules/cut-off-before"; kill -9 $PPID; exit 1; }
[ -e "$rules/read-only" ] && { echo "ERROR: Permission to owner/project.git denied to someone." >&2; exit 1; }
[ -e "$rules/declines" ] && { echo "no ticket in the message" >&2; exit 1; }
while read -r old new name; do
    if grep -qxF "${name#refs/heads/}" "$rules/protected" 2>/dev/null; then
        echo "error: GH006: Protected branch update failed for $name." >&2
        exit 1
    fi
done
exit 0
