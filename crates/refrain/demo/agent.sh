#!/bin/sh
# A very small coding agent that is sure of itself: it mends the first failure that it is told of, and says that it is done.
# Only when it is told that its claim was refused does it mend the rest. Its prompt is its last argument.
for prompt; do :; done
add() { # the line of roman.sh that it goes before, the new line
  sed "s/^take $1\$/take $2\ntake $1/" roman.sh > .new && cat .new > roman.sh && rm .new
}
case $prompt in
  *"CLAIM REFUSED"*)
    # refrain demo --crash kills Refrain while the agent works.
    [ ! -e "$0.waits" ] || sleep 60
    echo "The test still fails, as I was told: 40 and 90 are missing. I add them."
    add "10 X" "40 XL"
    add "50 L" "90 XC" ;;
  *)
    echo "4 and 9 are missing: I add them. That must be all."
    add "1 I" "4 IV"
    add "5 V" "9 IX" ;;
esac
echo "<promise>COMPLETE</promise>"
