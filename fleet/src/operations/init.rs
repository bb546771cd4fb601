//! `refrain fleet init`: tries what a fleet needs, and writes it into the user's configuration.

use refrain_app::options::fleet::InitArgs;
use refrain_app::verbs::set_config::set_config;
use refrain_app::{Action, Context, RequestError};
use refrain_engine::config::AgentChoice;
use refrain_engine::{Service, chain, tool};

use super::doctor;
use super::rights::{Bench, rates};
use crate::client::has_no_password;
use crate::settings::{Settings, failed};
use crate::shared::labels;
use crate::{say, worker};

/// Nothing is written unless the git remote and the server do what is needed.
pub(crate) async fn run(context: &Context, args: InitArgs) -> Result<(), RequestError> {
    context.check(Action::Configure)?;
    let settings = Settings::read(context)?.with(args.address.clone(), args.namespace.clone());
    let origin = || tool::run("git", &["remote", "get-url", "origin"], context.dir.as_std_path()).ok();
    let remote = args.remote.or_else(|| settings.state().ok()).or_else(|| Some(origin()?.trim().to_owned()));
    let Some(remote) = remote else {
        let error = "URL: it is missing, and this is no repository with an origin; accepted: the address of a git remote";
        return Err(
            RequestError::usage(error).hint("git init --bare makes one, on a host that all machines reach")
        );
    };
    if !has_no_password(&remote) || remote.starts_with('-') {
        let error = "URL: it holds a password, or begins with -; accepted: the address of a git remote, such as ssh://HOST/PATH.git";
        return Err(RequestError::usage(error));
    }
    let bench = Bench::new(&context.host.data_home).map_err(failed)?;
    let took = bench.try_remote(&remote).map_err(|lacking| {
        failed(format!("{remote} cannot have the loops of a fleet: {}", lacking.found)).hint(lacking.advice)
    })?;
    say::print(&format!(
        "git remote {remote}: loops can be kept there, a push takes {} ms",
        took.as_millis()
    ));
    if let Some(limit) = rates(&remote) {
        say::print(&format!("  {limit}: that is enough for a few loops at a time"));
    }
    let client = settings.connect("refrain").await?;
    let server =
        doctor::server(&client).await.map_err(|lacking| failed(lacking.found).hint(lacking.advice))?;
    say::print(&format!("server {}: {server}", settings.address()?));
    match labels::register(&client).await {
        Ok(made) if made.is_empty() => {}
        Ok(made) => say::print(&format!("  it can filter loops by {} from now on", made.join(", "))),
        Err(status) => say::print(&format!(
            "  it cannot filter loops by project or state: {}; temporal operator search-attribute create makes them",
            status.message()
        )),
    }
    let signing = context.host.signing();
    signing.require_key().map_err(|error| failed(chain(&error)))?;
    let Some(own) = signing.public_key() else { return Err(failed("the key of this user cannot be read")) };
    bench.leave_key(&remote, &own, &worker::machine()).map_err(failed)?;
    set_config(context, "fleet.state", &remote)?;
    for (key, value) in [("fleet.address", &args.address), ("fleet.namespace", &args.namespace)] {
        if let Some(value) = value {
            set_config(context, key, value)?;
        }
    }
    let service = Service::open(&context.dir, context.host.clone())?;
    let mut signers = service.settings(AgentChoice::default(), context.has_variables())?.config.trust.signers;
    signers.extend(args.signer);
    signers.sort();
    signers.dedup();
    signers.retain(|key| *key != own);
    if !signers.is_empty() {
        let list: Vec<_> = signers.iter().map(|key| format!("\"{key}\"")).collect();
        let file = set_config(context, "trust.signers", &format!("[{}]", list.join(", ")))?;
        say::print(&format!("written to {file}"));
    }
    for (key, machine) in bench.keys(&remote).map_err(failed)? {
        if key != own && !signers.contains(&key) {
            say::print(&format!("a machine that calls itself {machine} left the key {key}"));
            say::print(&format!(
                "  if that is its key by refrain doctor there: refrain fleet init --signer {key}"
            ));
        }
    }
    say::print(&format!("the key of this machine is {own}; the others accept it with --signer"));
    say::print(&format!(
        "to drive loops here: refrain config set worker.remotes {remote}; refrain config set worker.agents claude; refrain worker"
    ));
    Ok(())
}
