// This plugin gives opencode the hooks of Lithos: a briefing when a session starts, passages that match a prompt,
// and a reminder before a compaction. To remove it, run: lithos connect opencode --hooks --remove
//
// It serves both plugin interfaces: `server` for 1.18.29 and later versions of opencode 1, and `setup` for
// opencode 2. Sources: opencode.ai/v1/docs/plugins, packages/plugin/src/index.ts (0d4d22f4e6) and
// packages/plugin/src/promise/session.ts (03545fd3bb) of anomalyco/opencode, and opencode.ai/v2/docs/migrate-v1.
// For opencode 2 the plugin only gives the briefing, because the form of its messages is not documented.

import { execFile } from "node:child_process"
import { accessSync, constants } from "node:fs"

const COMMAND = $command
const MORE = $more
const LIMIT_MS = 1000
const MOST = 200

// Starts a hook of Lithos and returns its text. Every failure gives an empty text, because an error in a plugin
// can end the turn.
const ask = (command, event, payload) =>
  new Promise((done) => {
    try {
      accessSync(COMMAND[0], constants.X_OK)
      const words = [command, "--hook", "--client", "opencode", "--event", event, ...MORE]
      const hook = execFile(COMMAND[0], [...COMMAND.slice(1), ...words], { timeout: LIMIT_MS }, (error, out) => {
        try {
          done((!error && JSON.parse(out).additionalContext) || "")
        } catch {
          done("")
        }
      })
      hook.stdin.on("error", () => {})
      hook.stdin.end(JSON.stringify(payload))
    } catch {
      done("")
    }
  })

// A map of promises by key, which forgets the oldest key.
const remembered = () => {
  const known = new Map()
  return {
    get(key, make) {
      if (!known.has(key)) {
        if (known.size >= MOST) known.delete(known.keys().next().value)
        known.set(key, make())
      }
      return known.get(key)
    },
    has: (key) => known.has(key),
    forget: (key) => known.delete(key),
  }
}

const makeHooks = (cwd) => {
  const briefings = remembered()
  const passages = remembered()
  const reasons = remembered()
  const subagents = remembered()
  return {
    // opencode asks for the system prompt at each request, so each session's text must stay the same. A session
    // that this process has not created was resumed: its system prompt no longer has the earlier briefing.
    briefing: (session) =>
      subagents.has(session)
        ? ""
        : briefings.get(session, () =>
            ask("brief", "start", { session_id: session, cwd, source: reasons.get(session, () => "clear") }),
          ),
    passages: (session, message, prompt) =>
      subagents.has(session)
        ? ""
        : passages.get(message, () => ask("brief", "prompt", { session_id: session, cwd, prompt })),
    reminder: (session) => ask("checkpoint", "compaction", { session_id: session, cwd }),
    created(session, parent) {
      if (parent) subagents.get(session, () => true)
      else reasons.get(session, () => "startup")
    },
    compacted(session) {
      briefings.forget(session)
      reasons.forget(session)
      reasons.get(session, () => "compact")
    },
  }
}

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic && typeof part.text === "string")
    .map((part) => part.text)
    .join("\n")

const server = async ({ directory }) => {
  const hooks = makeHooks(directory)
  return {
    event: async ({ event }) => {
      const { info, sessionID } = event?.properties ?? {}
      if (event?.type === "session.created" && info?.id) hooks.created(info.id, info.parentID)
      if (event?.type === "session.compacted" && sessionID) hooks.compacted(sessionID)
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = input?.sessionID ? await hooks.briefing(input.sessionID) : ""
      if (text) output.system.push(text)
    },
    "experimental.chat.messages.transform": async (_input, output) => {
      const last = output?.messages?.findLast((message) => message.info?.role === "user")
      if (!last?.info?.id || !last.info.sessionID) return
      const prompt = textOf(last.parts)
      const text = prompt ? await hooks.passages(last.info.sessionID, last.info.id, prompt) : ""
      if (text) last.parts.unshift({ type: "text", synthetic: true, text })
    },
    "experimental.session.compacting": async (input, output) => {
      const text = input?.sessionID ? await hooks.reminder(input.sessionID) : ""
      if (text) output.context.push(text)
    },
  }
}

const setup = async (ctx) => {
  const hooks = makeHooks(ctx?.location?.directory ?? process.cwd())
  await ctx.session.hook("context", async (event) => {
    if (!event?.sessionID || (event.kind && event.kind !== "primary")) return
    const text = await hooks.briefing(event.sessionID)
    if (text) event.system.push({ type: "text", text })
  })
}

export default { id: "lithos", server, setup }
