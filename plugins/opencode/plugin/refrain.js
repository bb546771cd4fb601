// Refrain: has this session go on while one of its loops does. Under `opencode run` nothing can go on, as the program leaves
// when the session is idle; under `opencode serve` it does.
import { spawn } from "node:child_process"

const REFRAIN = "refrain"

// What a hook answers; nothing where it has nothing to say, or anything is odd.
const ask = (hook, input) =>
  new Promise((resolve) => {
    const child = spawn(REFRAIN, ["hook", hook, "--agent", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    child.on("error", () => resolve(undefined))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part) => (said += part))
    child.on("close", () => {
      try {
        resolve(JSON.parse(said))
      } catch {
        resolve(undefined)
      }
    })
    child.stdin.end(JSON.stringify(input))
  })

// What the agent said last; nothing where it was interrupted, or its provider failed: then the session rests.
const lastMessage = async (client, id) => {
  const { data } = await client.session.messages({ path: { id } })
  const last = data?.findLast((message) => message.info.role === "assistant")
  if (!last || last.info.error) return undefined
  const words = last.parts.filter((part) => part.type === "text" && !part.synthetic)
  return words.map((part) => part.text).join("\n")
}

export const Refrain = async ({ client, directory }) => ({
  event: async ({ event }) => {
    if (event.type !== "session.idle") return
    const id = event.properties.sessionID
    const message = await lastMessage(client, id)
    if (message === undefined) return
    const answer = await ask("stop", {
      session_id: id,
      cwd: directory,
      hook_event_name: "Stop",
      last_assistant_message: message,
    })
    if (answer?.decision !== "block") return
    await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text: answer.reason }] } })
  },
  // What its tools start knows whose session it is.
  "shell.env": async (input, output) => {
    if (input.sessionID) output.env.REFRAIN_SESSION = input.sessionID
  },
  "experimental.session.compacting": async (input, output) => {
    const answer = await ask("session-start", {
      session_id: input.sessionID,
      cwd: directory,
      hook_event_name: "SessionStart",
      source: "compact",
    })
    const told = answer?.hookSpecificOutput?.additionalContext
    if (told) output.context.push(told)
  },
})
