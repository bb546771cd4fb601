use serde_json::{Value, json};

use super::world::World;

const LONGEST_SECTION: usize = 3_000;

/// Executes a call, or returns the error's name.
pub(super) fn answer(
    world: &mut World,
    method: &str,
    body: &Value,
    place: &str,
) -> Result<Value, &'static str> {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let (channel, ts) = (text("channel"), text("ts"));
    match method {
        "auth.test" => Ok(json!({"user_id": "U0BOT", "team_id": "T0"})),
        "apps.connections.open" => Ok(json!({"url": format!("ws://{place}/link")})),
        "chat.postMessage" => {
            writable(world, &channel, body)?;
            let thread = body["thread_ts"].as_str();
            let said = world.put(&channel, thread, &text("text"));
            said.attach(body);
            let ts = said.ts.clone();
            Ok(json!({"channel": channel, "ts": ts, "message": {"ts": ts}}))
        }
        "chat.postEphemeral" => {
            exists(&channel)?;
            let said = world.put(&channel, body["thread_ts"].as_str(), &text("text"));
            said.only_for = Some(text("user"));
            Ok(json!({"message_ts": said.ts}))
        }
        "chat.update" => {
            writable(world, &channel, body)?;
            let said = world.find(&channel, &ts).ok_or("message_not_found")?;
            said.set(body);
            Ok(json!({"channel": channel, "ts": ts}))
        }
        "reactions.add" | "reactions.remove" => {
            let said = world.find(&channel, &text("timestamp")).ok_or("message_not_found")?;
            let name = text("name");
            match (method, said.reactions.contains(&name)) {
                ("reactions.add", true) => return Err("already_reacted"),
                ("reactions.add", false) => {
                    said.ladder.push(name.clone());
                    said.reactions.insert(name);
                }
                (_, false) => return Err("no_reaction"),
                (_, true) => drop(said.reactions.remove(&name)),
            }
            Ok(json!({}))
        }
        "conversations.history" | "conversations.replies" => {
            exists(&channel)?;
            let (all, of) = (body["include_all_metadata"] == "true", ts.as_str());
            let is_of = |it: &&super::SlackMessage| match of {
                "" => it.thread.is_none(),
                _ => it.ts == of || it.thread.as_deref() == Some(of),
            };
            let open = world.said.iter().filter(|it| it.channel == channel && it.only_for.is_none());
            let listed: Vec<_> = open.filter(is_of).map(|it| it.listed(all)).collect();
            Ok(json!({"messages": listed, "has_more": false}))
        }
        "files.getUploadURLExternal" => {
            let id = format!("F{}", world.number());
            world.uploads.insert(id.clone(), (text("filename"), String::new()));
            Ok(json!({"upload_url": format!("http://{place}/upload/{id}"), "file_id": id}))
        }
        "files.completeUploadExternal" => {
            let channel = text("channel_id");
            writable(world, &channel, body)?;
            let id = body["files"][0]["id"].as_str().unwrap_or_default();
            let file = world.uploads.remove(id).ok_or("file_not_found")?;
            let said = world.put(&channel, body["thread_ts"].as_str(), &text("initial_comment"));
            said.files.push(file);
            Ok(json!({"files": [{"id": id}]}))
        }
        _ => Err("unknown_method"),
    }
}

fn exists(channel: &str) -> Result<(), &'static str> {
    if channel.starts_with('C') { Ok(()) } else { Err("channel_not_found") }
}

fn writable(world: &mut World, channel: &str, body: &Value) -> Result<(), &'static str> {
    exists(channel)?;
    let sections = body["blocks"].as_array().into_iter().flatten();
    let is_long = |block: &Value| {
        block["text"]["text"].as_str().is_some_and(|text| text.chars().count() > LONGEST_SECTION)
    };
    if sections.into_iter().any(is_long) {
        return Err("invalid_blocks");
    }
    // Slack takes no null for a text.
    if body.as_object().is_some_and(|body| body.values().any(Value::is_null)) {
        return Err("invalid_arguments");
    }
    if world.is_time(channel) { Ok(()) } else { Err("ratelimited") }
}
