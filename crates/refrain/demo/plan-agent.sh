#!/bin/sh
# A very small coding agent for the tasks of PLAN.md. Its prompt is its last argument. It gets one of them wrong at first.
for prompt; do :; done
case $prompt in
  *"Write shout.sh"*) echo 'sh upper.sh "$(sh double.sh "$1")"' > shout.sh ;;
  *"Write upper.sh"*) echo 'echo "$1" | tr a-z A-Z' > upper.sh ;;
  *"CLAIM REFUSED"*) echo 'echo "$1$1"' > double.sh ;;
  *) echo 'echo "$1"' > double.sh ;;
esac
echo "<promise>TASK_COMPLETE</promise>"
