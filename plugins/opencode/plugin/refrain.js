// Refrain: has this session go on while one of its loops does. Under `opencode run` nothing can go on, as the program leaves
// when the session is idle; on a terminal and under `opencode serve` it does.
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

// The last turn: its words, and for each answer what it used. Nothing where that sums the session up: it was compacted,
// which is no turn.
const lastTurn = async (client, id) => {
  const { data } = await client.session.messages({ path: { id } })
  const from = data?.findLastIndex((message) => message.info.role === "user") ?? -1
  const answers = (data ?? []).slice(from + 1).filter((message) => message.info.role === "assistant")
  const last = answers.at(-1)
  if (!last || last.info.summary) return undefined
  const words = last.parts.filter((part) => part.type === "text" && !part.synthetic)
  return {
    last_assistant_message: words.map((part) => part.text).join("\n"),
    answers: answers.map(({ info, parts }) => ({
      tokens: info.tokens,
      cost: info.cost,
      model: info.modelID,
      worked: parts.some((part) => part.type === "tool"),
    })),
  }
}

// Sessions whose turn was interrupted, or whose provider failed: they rest. Only later does the message say so itself.
const broken = new Set()

export const Refrain = async ({ client, directory }) => ({
  event: async ({ event }) => {
    const id = event.properties?.sessionID
    if (event.type === "session.error") broken.add(id)
    if (event.type === "session.status" && event.properties.status.type === "busy") broken.delete(id)
    if (event.type !== "session.idle" || broken.has(id)) return
    const turn = await lastTurn(client, id)
    if (turn === undefined) return
    const answer = await ask("stop", { session_id: id, cwd: directory, hook_event_name: "Stop", ...turn })
    const ended = answer?.systemMessage
    if (ended) await client.tui?.showToast({ body: { title: "Refrain", message: ended, variant: "info" } }).catch(() => {})
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
