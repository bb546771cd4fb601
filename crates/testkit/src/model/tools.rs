//! Finds the tool of a request that does what a turn wants: every program has its own names and arguments.

use serde_json::{Value, json};

use super::script::Action;

#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// It takes plain text instead of arguments.
    pub(super) is_plain: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Input,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    Arguments(Value),
    Plain(String),
}

impl Call {
    pub(super) fn arguments(&self) -> Value {
        match &self.input {
            Input::Arguments(arguments) => arguments.clone(),
            Input::Plain(text) => json!({ "input": text }),
        }
    }
}

/// The calls that do this, with the tools there are, in a folder. `serial` makes their ids unlike those of other requests.
pub(super) fn calls(actions: &[Action], tools: &[Tool], folder: &str, serial: usize) -> Vec<Call> {
    let call = |(place, action): (usize, &Action)| {
        let (name, input) = match action {
            Action::Bash(command) => bash(command, tools),
            Action::Write { path, content } => write(&absolute(path, folder), content, tools),
            Action::Tool { name, arguments } => (name.clone(), Input::Arguments(arguments.clone())),
        };
        Call { id: format!("{serial:06}{place:02}"), name, input }
    };
    actions.iter().enumerate().map(call).collect()
}

fn bash(command: &str, tools: &[Tool]) -> (String, Input) {
    let name = ["Bash", "exec_command", "shell_command", "bash", "run_shell_command"]
        .into_iter()
        .find(|name| tools.iter().any(|tool| tool.name == *name))
        .unwrap_or("bash");
    let key = if name == "exec_command" { "cmd" } else { "command" };
    let mut arguments = json!({ key: command });
    if tools.iter().any(|tool| tool.name == name && tool.arguments.iter().any(|key| key == "description")) {
        arguments["description"] = "Do what the script says".into();
    }
    (name.to_owned(), Input::Arguments(arguments))
}

fn write(path: &str, content: &str, tools: &[Tool]) -> (String, Input) {
    for name in ["Write", "write", "write_file"] {
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else { continue };
        let key = tool.arguments.iter().find(|key| ["file_path", "filePath", "path"].contains(&key.as_str()));
        let key = key.map_or("file_path", String::as_str);
        return (name.to_owned(), Input::Arguments(json!({ key: path, "content": content })));
    }
    let Some(tool) = tools.iter().find(|tool| tool.name == "apply_patch") else {
        return bash(&format!("printf '%s' '{}' > '{}'", quoted(content), quoted(path)), tools);
    };
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
    let input = if tool.is_plain { Input::Plain(patch) } else { Input::Arguments(json!({ "input": patch })) };
    (tool.name.clone(), input)
}

/// Escapes text for single quotes of a shell.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}

fn absolute(path: &str, folder: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", folder.trim_end_matches('/')) }
}

/// The agent's working folder; the programs put it into their prompts, each in its own words.
pub(super) fn folder(prompt: &str) -> String {
    const WORDS: [&str; 4] =
        ["orking directory: ", "<cwd>", "orking in the directory: ", "**Workspace Directories:**\n"];
    let found = WORDS.iter().find_map(|words| Some(prompt.split_once(words)?.1));
    let path = found.unwrap_or(".").trim_start_matches([' ', '-', '`']);
    path.split(['\n', '<', '`']).next().unwrap_or(".").trim().to_owned()
}
