//! `refrain serve`: the HTTP server, and what runs beside it while it runs.

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_app::{Caller, Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::values::whole_number;
use refrain_engine::tool::Tool;
use refrain_engine::{Key, chain};
use refrain_server::http::{self, Address, Server, Tls, Way};
use refrain_server::ntfy::Replies;
use refrain_server::slack::Slack;
use refrain_server::{OpenError, RequestHandler};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{ntfy, out, run, slack, values};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  refrain serve --open
  refrain serve --port 8080 --root ~/projects")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The port; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 7773, allow_negative_numbers = true, value_parser = |text: &str| whole_number(text, 0..=u16::MAX))]
    port: u16,
    /// The address to listen on; one that others can reach needs --tls-cert and --tls-key, or --behind-proxy
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = address)]
    host: IpAddr,
    /// The address at which users reach a proxy in front of it, as https://loops.example.org; the proxy ends TLS and authenticates
    /// them
    #[arg(long, value_name = "ORIGIN")]
    behind_proxy: Option<String>,
    /// Speak TLS with this certificate: PEM, followed by its issuers. Its names are the accepted host names
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "behind_proxy", value_hint = clap::ValueHint::FilePath)]
    tls_cert: Option<Utf8PathBuf>,
    /// The key of the certificate: PEM, without a passphrase
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = clap::ValueHint::FilePath)]
    tls_key: Option<Utf8PathBuf>,
    /// A folder whose loops are shown, and that loops may work in; may be repeated [default: the current project and all
    /// projects that Refrain has worked in]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, value_parser = values::path)]
    root: Vec<Utf8PathBuf>,
    /// Open it in the browser
    #[arg(long)]
    open: bool,
    /// Print its address as a JSON object
    #[arg(long)]
    json: bool,
}

// What is done beside serving.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Make and print a token for a program or browser, valid for 30 days
    ///
    /// Only its hash is stored.
    #[command(after_help = "Examples:\n  refrain serve token\n  refrain serve token list")]
    Token(TokenArgs),
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
struct TokenArgs {
    #[command(subcommand)]
    verb: Option<TokenVerb>,
    /// Revoke all tokens, and the cookies of all browsers, and make none
    #[arg(long)]
    revoke: bool,
}

// What is done with the tokens that there are.
#[derive(Debug, clap::Subcommand)]
enum TokenVerb {
    /// List the valid tokens and browsers
    #[command(after_help = "Examples:\n  refrain serve token list\n  refrain serve token list --json")]
    List {
        /// Print an array
        #[arg(long)]
        json: bool,
    },
    /// Revoke one token, or the cookie of one browser
    #[command(
        after_help = "Examples:\n  refrain serve token revoke 3f2a91c4\n  refrain serve token --revoke"
    )]
    Revoke {
        /// Its id, as refrain serve token list prints it
        id: String,
    },
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "accepted: an IP address, like 127.0.0.1 or ::1".to_owned())
}

/// How long a server that ends waits for loops that it is just handing to their runners.
pub(crate) const HANDOVER: Duration = Duration::from_mins(1);

#[derive(Serialize)]
struct ServerAddresses {
    url: String,
    /// The same for programs on this machine, which may know nothing of the names that browsers do.
    direct: String,
    /// The link that authenticates one browser, once.
    open: String,
}

/// Serves until it receives a signal to stop.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    if let Some(Verb::Token(token)) = &args.verb {
        return token.run(context);
    }
    let address = Address::new(args.host, args.port, way(context, args)?);
    let address = address.map_err(|error| RequestError::usage(error.to_string()))?;
    let handler =
        RequestHandler::open_everywhere(context, &args.root).map_err(not_open)?.called_by(Caller::Token);
    let (slack, replies) = (slack::open(context), ntfy::open(context, &args.root));
    let others = [slack.as_ref().map(Slack::handovers), replies.as_ref().map(Replies::handovers)];
    let handovers = [&[Some(handler.handovers())][..], &others].concat();
    let runtime = run::runtime()?;
    let served = runtime.block_on(serve(context, args, (handler, slack, replies), address));
    handovers.iter().flatten().for_each(|at_work| at_work.wait(HANDOVER));
    // The clients are gone: requests that still wait for a loop are dropped.
    runtime.shutdown_background();
    served?;
    Ok(Code::Done.into())
}

/// A folder that cannot be served.
pub(crate) fn not_open(error: OpenError) -> RequestError {
    match error {
        OpenError::NoFolder(folder) => {
            RequestError::usage(format!("--root {folder}: accepted: a folder that is there"))
        }
        OpenError::Engine(error) => error.into(),
    }
}

fn way(context: &Context, args: &Args) -> Result<Way, RequestError> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(args.behind_proxy.clone().map_or(Way::Loopback, Way::Proxy));
    };
    let key = context.dir.join(key);
    let tls = Tls::read(&context.dir.join(certificate), &key);
    let tls = tls.map_err(|error| RequestError::usage(chain(&error)))?;
    if tls.is_exposed() {
        out::tell_line(
            "",
            &format!("refrain: warning: {key} can be read by others on this machine; chmod 600 mends that"),
        );
    }
    Ok(Way::Tls(Box::new(tls)))
}

impl TokenArgs {
    fn run(&self, context: &Context) -> Result<ExitCode, RequestError> {
        let handler = RequestHandler::open(context, &[]).map_err(not_open)?;
        let failed = |error| RequestError::new(Code::Failed, chain(&error));
        match &self.verb {
            Some(TokenVerb::List { json: true }) => out::print_json(&http::tokens(&handler))?,
            Some(TokenVerb::List { json: false }) => out::print(&listed(&http::tokens(&handler))),
            Some(TokenVerb::Revoke { id }) => {
                if !http::revoke_token(&handler, id).map_err(failed)? {
                    let error = format!("no token {}", printable(id).replace('\n', " "));
                    let hint = "refrain serve token list shows them";
                    return Err(RequestError::new(Code::NotFound, error).hint(hint));
                }
                out::print(&format!("token {id} is revoked\n"));
            }
            None if self.revoke => {
                let count = http::revoke_tokens(&handler).map_err(failed)?;
                out::print(&format!("tokens and browsers that are let in no more: {count}\n"));
            }
            None => out::print(&format!("{}\n", http::new_token(&handler).map_err(failed)?)),
        }
        Ok(Code::Done.into())
    }
}

fn listed(tokens: &[Key]) -> String {
    if tokens.is_empty() {
        return "No tokens.\n".to_owned();
    }
    let day = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M").to_string();
    let line = |key: &Key| {
        let kind = if key.browser { "browser" } else { "token" };
        format!("{}  {kind:<7}  made {}  ends {}\n", key.id, day(key.made_at), day(key.ends_at))
    };
    tokens.iter().map(line).collect()
}

async fn serve(
    context: &Context,
    args: &Args,
    (handler, slack, replies): (RequestHandler, Option<Slack>, Option<Replies>),
    address: Address,
) -> Result<(), RequestError> {
    refrain_engine::leave_signals();
    // Before the address is announced: a client that knows it may end this process.
    let mut interrupt = heed(SignalKind::interrupt())?;
    let mut terminate = heed(SignalKind::terminate())?;
    let mut hangup = refrain_engine::hangup().map_err(not_heard)?;
    let server = Server::listen(handler, address).await;
    let server = server.map_err(|error| {
        RequestError::new(Code::Failed, chain(&error)).hint("--port 0 takes any port that is free")
    })?;
    announce(context, args, &server)?;
    let (stopper, stop) = watch::channel(false);
    // Every task that runs beside the server is stopped by `stop`, and waited for.
    let mut parts = JoinSet::new();
    parts.spawn(server.run(stop.clone()));
    if let Some(slack) = slack {
        parts.spawn(slack.run(stop.clone()));
    }
    if let Some(replies) = replies {
        parts.spawn(replies.run(stop));
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = refrain_engine::next_of(&mut hangup) => {}
    }
    let _ = stopper.send(true);
    while parts.join_next().await.is_some() {}
    Ok(())
}

fn heed(kind: SignalKind) -> Result<Signal, RequestError> {
    signal(kind).map_err(not_heard)
}

fn not_heard(error: std::io::Error) -> RequestError {
    RequestError::new(Code::Failed, format!("signals cannot be heard: {error}"))
}

fn announce(context: &Context, args: &Args, server: &Server) -> Result<(), RequestError> {
    let (url, invitation) = (server.url().to_owned(), server.invitation());
    if args.json {
        let direct = server.direct().to_owned();
        out::print_json_line(&ServerAddresses { url, direct, open: invitation.clone() })?;
    } else {
        out::print(&format!("{url}\n"));
        if out::is_watched() && !args.open {
            out::tell_line("", &format!("to let one browser in, once: {invitation}"));
        }
        let (browsers, tokens): (Vec<_>, Vec<_>) = server.tokens().into_iter().partition(|key| key.browser);
        let valid = format!("valid tokens: {}, browsers: {}", tokens.len(), browsers.len());
        out::tell_line("", &format!("{valid}; refrain serve token list shows them"));
        out::tell_line(
            "",
            "refrain serve token prints a new token: type it in another browser, or give it to a program",
        );
        out::tell_line("", "Ctrl-C ends it; loops continue without it");
    }
    if args.open && !open(context, &invitation) {
        out::tell_line("", &format!("note: no browser could be opened; open {invitation}"));
    }
    Ok(())
}

/// Has the person's browser open it.
fn open(context: &Context, url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let tool = context.outside(Tool::errand(program, context.dir.as_std_path())).args([url]);
    tool.limit(Duration::from_secs(10)).run().is_ok_and(|done| done.status.success())
}
