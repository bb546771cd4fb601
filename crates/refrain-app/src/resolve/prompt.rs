//! The prompt of a loop's agent: a task, a mode, directions. Which of them come from the command line and which from
//! the configuration is decided here; how a prompt is put together from them is the core's business.

use std::collections::BTreeMap;
use std::io::Read;

use camino::Utf8Path;
use refrain_core::prompt::mode;
use refrain_engine::config::keys::Prompt;
use refrain_engine::config::{Settings, nearest};

use super::{StartLoop, Words, who};
use crate::Context;
use crate::error::RequestError;
use crate::options::work::TaskArgs;

/// No agent takes a longer prompt (agent-clis.md, trap 1), in bytes.
const LARGEST_PROMPT: u64 = 10 << 20;

pub fn prompt(context: &Context, request: &StartLoop, settings: &Settings) -> Result<String, RequestError> {
    let said = || said(context, request.words.as_ref(), &request.options.task, settings);
    let prompt = match &request.mode {
        // A task that is configured for loops that have none is not what this one is about.
        Some(name) => mode::prompt(&of_mode(name, settings)?, said()?.as_deref()),
        None => match said()? {
            Some(task) => task,
            None => configured(settings)?,
        },
    };
    Ok(match &request.options.directions {
        Some(directions) => mode::directed(&prompt, directions),
        None => prompt,
    })
}

/// The task on the command line, if any.
fn said(
    context: &Context,
    words: Option<&Words>,
    args: &TaskArgs,
    settings: &Settings,
) -> Result<Option<String>, RequestError> {
    let prompt = if let Some(text) = &args.prompt {
        text.clone()
    } else if let Some(file) = &args.prompt_file {
        read_any(&format!("--prompt-file {file}"), &context.dir.join(file))?
    } else if let Some(name) = &args.prompt_name {
        named_prompt(&format!("--prompt-name {name}"), name, settings)?
    } else if let Some(words) = words {
        match words {
            Words::Text(text) => text.clone(),
            Words::Stdin => bounded(std::io::stdin().lock()).map_err(|error| unreadable("stdin", &error))?,
        }
    } else {
        return Ok(None);
    };
    not_empty(prompt).map(Some)
}

fn configured(settings: &Settings) -> Result<String, RequestError> {
    let Some(name) = &settings.config.start.prompt_name else {
        let error = "nothing says what it is to do; accepted: PROMPT, --prompt, --prompt-file, --prompt-name or --mode";
        return Err(RequestError::usage(error));
    };
    not_empty(named_prompt(&format!("{} {name}", who(false, settings, "prompt-name")), name, settings)?)
}

fn not_empty(prompt: String) -> Result<String, RequestError> {
    match prompt.trim().is_empty() {
        true => Err(RequestError::usage("the prompt is empty; accepted: what the agent is to do")),
        false => Ok(prompt),
    }
}

fn named_prompt(who: &str, name: &str, settings: &Settings) -> Result<String, RequestError> {
    let prompts = &settings.config.prompts;
    let Some(prompt) = prompts.get(name) else {
        let names: Vec<_> = prompts.keys().map(String::as_str).collect();
        let advice = match (nearest(name, names.iter().copied()), names.is_empty()) {
            (Some(meant), _) => format!("did you mean {meant}?"),
            (None, false) => format!("accepted: {}", names.join(", ")),
            (None, true) => "the configuration has none; accepted: a [prompts.NAME] of it".to_owned(),
        };
        return Err(RequestError::usage(format!("{who}: there is no such prompt; {advice}")));
    };
    text(who, prompt)
}

/// The text of a mode: what the configuration has under its name, else the one that is built in.
fn of_mode(name: &str, settings: &Settings) -> Result<String, RequestError> {
    let own = &settings.config.modes;
    let who = format!("--mode {name}");
    if let Some(mode) = own.get(name) {
        return not_empty(text(&who, mode)?);
    }
    mode::built_in(name).map(str::to_owned).ok_or_else(|| {
        let names: Vec<&str> = modes(own).into_keys().collect();
        let meant = nearest(name, names.iter().copied()).map(|meant| format!("; did you mean {meant}?"));
        let accepted = names.join(", ");
        let error =
            format!("{who}: there is no such mode; accepted: {accepted}{}", meant.unwrap_or_default());
        RequestError::usage(error).hint("[modes.NAME] of the configuration makes one")
    })
}

/// Every mode by its name, sorted, with what the configuration says of it if it does.
pub fn modes(own: &BTreeMap<String, Prompt>) -> BTreeMap<&str, Option<&Prompt>> {
    let built_in = mode::BUILT_IN.iter().map(|(name, _)| (*name, None));
    built_in.chain(own.iter().map(|(name, prompt)| (name.as_str(), Some(prompt)))).collect()
}

fn text(who: &str, prompt: &Prompt) -> Result<String, RequestError> {
    match (&prompt.text, &prompt.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => read(&format!("{who}: {file}"), file),
        (None, None) => Ok(String::new()),
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> RequestError {
    RequestError::usage(format!(
        "{name} cannot be read as a prompt: {error}; accepted: a readable file of UTF-8 text"
    ))
}

/// What a person wrote for an agent into a file.
pub fn read(name: &str, path: &Utf8Path) -> Result<String, RequestError> {
    // Reading anything but a file may never end, or never begin.
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => {
            Err(unreadable(name, &std::io::Error::other("it is no regular file")))
        }
        Ok(_) | Err(_) => read_any(name, path),
    }
}

/// The same for a path on the command line, which may be a pipe too: the person waits for what comes through it.
fn read_any(name: &str, path: &Utf8Path) -> Result<String, RequestError> {
    let text = || match path.is_dir() {
        true => Err(std::io::Error::other("it is a folder")),
        false => bounded(std::fs::File::open(path)?),
    };
    text().map_err(|error| unreadable(name, &error))
}

/// A text without a byte order mark, which an editor may have put before it.
fn bounded(from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    let mut bytes = Vec::new();
    from.take(LARGEST_PROMPT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_PROMPT {
        return Err(std::io::Error::other(format!("it has more than {LARGEST_PROMPT} bytes")));
    }
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).read_to_string(&mut text)?;
    Ok(text)
}
