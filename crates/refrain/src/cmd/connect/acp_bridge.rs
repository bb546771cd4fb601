//! `refrain acp-bridge`, hidden: started by the keeper for an agent that speaks ACP. It reads the prompt from standard
//! input and prints the agent's output as events.

use std::io::Read;
use std::process::ExitCode;

use clap::ValueEnum;
use refrain_app::{Code, Context, RequestError};
use refrain_core::spec::Permissions;
use refrain_engine::AcpBridge;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value_t)]
    permissions: PermissionMode,
    #[arg(long)]
    model: Option<String>,
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// What the agent may do.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PermissionMode {
    #[default]
    Auto,
    Full,
    Agent,
    ReadOnly,
}

/// Bridges until the agent is done.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let failed =
        |what: &str, error: std::io::Error| RequestError::new(Code::Failed, format!("{what}: {error}"));
    let mut prompt = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut prompt);
    read.map_err(|error| failed("the prompt cannot be read", error))?;
    let mut command = args.command.into_iter();
    let Some(program) = command.next() else { return Err(RequestError::usage("no command".to_owned())) };
    let permissions = match args.permissions {
        PermissionMode::Auto => Permissions::Auto,
        PermissionMode::Full => Permissions::Full,
        PermissionMode::Agent => Permissions::Agent,
        PermissionMode::ReadOnly => Permissions::ReadOnly,
    };
    let dir = context.dir.clone().into_std_path_buf();
    let mut bridge = AcpBridge::new(program, command.collect(), dir, permissions);
    bridge.model = args.model;
    let is_ok = bridge
        .run(&prompt, &mut std::io::stdout().lock())
        .map_err(|error| failed("the bridge cannot be set up", error))?;
    Ok(ExitCode::from(u8::from(!is_ok)))
}
