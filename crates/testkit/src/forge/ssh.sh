#!/bin/sh
# Stands in for ssh: the last word is what git has it run at the other end, which is a folder here.
[ -e "$FORGE_RULES/offline" ] && { echo "ssh: connect to host $FORGE_HOST port 22: Connection refused" >&2; exit 255; }
[ -e "$FORGE_RULES/unknown-key" ] && { echo "git@$FORGE_HOST: Permission denied (publickey)." >&2; exit 255; }
for word; do command=$word; done
cd "$FORGE_REPOS" && eval "exec git ${command#git-}"
