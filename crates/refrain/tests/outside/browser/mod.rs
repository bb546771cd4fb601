//! The dashboard in Chromium: by mouse, by keyboard, on a narrow screen, beside a malicious agent.

mod conditions;
mod driver;
mod looks;
mod pictures;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use fantoccini::key::Key;
use serde_json::Value;
use testkit::{Gate, Invocation, Sandbox, Session, Signal, eventually};

use self::driver::Browser;

/// A server for the sandbox's project, and an authenticated browser.
struct ServedProject {
    browser: Browser,
    server: Session,
    url: String,
    go: Gate,
    sandbox: Sandbox,
}

impl ServedProject {
    fn new() -> Self {
        Self::with(&[])
    }

    /// The same, with more options for the browser.
    fn with(options: &[&str]) -> Self {
        Self::of(Sandbox::new(env!("CARGO_BIN_EXE_refrain")), options, |command| command)
    }

    /// The same, with programs of these names in the server's PATH.
    fn with_agents(names: &[&str]) -> Self {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_refrain"));
        let folders: Vec<_> = names
            .iter()
            .map(|name| Path::new(&sandbox.agent(name, "echo 1.0.0")).parent().unwrap().display().to_string())
            .collect();
        let path = format!("{}:/usr/bin:/bin", folders.join(":"));
        Self::of(sandbox, &[], |command| command.env("PATH", &path))
    }

    fn of(sandbox: Sandbox, options: &[&str], server: impl FnOnce(Invocation) -> Invocation) -> Self {
        let go = sandbox.gate("go");
        let (server, said) = serve_by(server(sandbox.command(&["serve", "--port", "0", "--json"])));
        let browser = Browser::open(&sandbox, options);
        browser.go(said["open"].as_str().unwrap());
        browser.shows("Loops");
        let url = said["url"].as_str().unwrap().to_owned();
        assert_eq!(browser.url(), format!("{url}/"), "no code stays in the address");
        Self { browser, server, url, go, sandbox }
    }

    /// An agent that prints this, and works until its gate opens.
    fn agent(&self, says: &str) -> String {
        self.sandbox.agent(
            "agent",
            &format!(
                "printf '%s\\n' \"$*\" > $NOTES/prompt-$REFRAIN_ITERATION\n{says}\nread -r _ < $GATES/go"
            ),
        )
    }

    /// Starts a loop by the form, after its preview.
    fn starts(&self, agent: &str) {
        let browser = &self.browser;
        browser.go(&format!("{}/start", self.url));
        browser.fill("#goal", "Mend all of it.");
        browser.fill("#command", agent);
        browser.click("#advanced summary");
        browser.fill("#name", "job");
        browser.fill("#gates", "true");
        browser.fill("#max_iterations", "9");
        browser.click("button[value=preview]");
        browser.shows("What will run");
        browser.shows("--max-iterations");
        browser.click("button[value=start]");
        browser.shows("Activity of iteration 1");
    }
}

/// A server at this port, and its printed addresses.
fn serve(sandbox: &Sandbox, port: &str) -> (Session, Value) {
    serve_by(sandbox.command(&["serve", "--port", port, "--json"]))
}

/// The server of this command.
fn serve_by(command: Invocation) -> (Session, Value) {
    let server = command.spawn();
    let said = eventually("it says where it is", || serde_json::from_str(&server.stdout()).ok());
    (server, said)
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn main_job_is_started_watched_steered_paused_resumed_and_cancelled() {
    let place = ServedProject::new();
    let browser = &place.browser;
    place.starts(&place.agent("echo \"at work on part $REFRAIN_ITERATION\""));
    for iteration in 1..=3 {
        browser.shows(&format!("Activity of iteration {iteration}"));
        browser.shows(&format!("at work on part {iteration}"));
        browser.picture(&format!("loop-{iteration}"));
        if iteration < 3 {
            place.go.let_one_pass();
        }
    }
    browser.fill("#steer", "Mind the dates.");
    browser.click("form[action$='/steer'] button");
    eventually("the agent is to be told", || {
        place.sandbox.event_names("job").contains(&"asked".to_owned()).then_some(())
    });
    place.go.let_one_pass();
    assert!(place.sandbox.wait_for_note("prompt-4").contains("Mind the dates."));

    browser.asks("pause");
    browser.click("#ask input[name=now]");
    browser.click("#ask button");
    browser.shows("paused");
    place.sandbox.wait_for_status("job", "paused");
    browser.asks("resume");
    browser.fill("#ask input[name=max_iterations]", "12");
    browser.click("#ask button");
    browser.shows("/12");
    browser.asks("cancel");
    browser.click("#ask input[name=now]");
    browser.click("#ask button");
    browser.shows("cancelled");
    place.sandbox.wait_for_status("job", "cancelled");
    browser.picture("cancelled");
    place.server.signal(Signal::TERM);
    place.server.wait().with_code(0);
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_page_reports_a_lost_server_and_continues_where_it_was() {
    let place = ServedProject::new();
    let browser = &place.browser;
    place.starts(&place.agent("echo \"part $REFRAIN_ITERATION\""));
    browser.shows("part 1");
    let port = place.url.rsplit(':').next().unwrap().to_owned();
    place.server.kill();
    browser.shows("The server does not answer");
    place.go.let_one_pass();
    place.sandbox.wait_for_note("prompt-2");
    let (_server, _) = serve(&place.sandbox, &port);
    browser.shows("Activity of iteration 2");
    browser.shows("part 2");
    let is_hidden = || browser.evaluate("return document.getElementById('gone').hidden") == true;
    eventually("it says no longer that the server is gone", || is_hidden().then_some(()));
    place.sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    browser.shows("cancelled");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn agent_output_is_text_and_no_markup() {
    let place = ServedProject::new();
    let browser = &place.browser;
    let hostile = r#"printf '<img src=x onerror="document.title=1"><script>document.title=2</script>\n\033[2J\033]0;taken\007</li></ol><h1>mine</h1>\n'
printf '"><svg onload=document.title=3>' > '<b>file<b>.txt'"#;
    place.starts(&place.agent(hostile));
    place.go.let_one_pass();
    browser.shows("Activity of iteration 2");
    browser.shows("<script>document.title=2</script>");
    browser.shows("<h1>mine</h1>");
    browser.reload();
    browser.shows("<script>document.title=2</script>");
    browser.click("a[href$='/diff']");
    browser.shows("onload=document.title=3");
    browser.go(&format!("{}/", place.url));
    browser.shows("job");
    let title = browser.evaluate("return document.title");
    assert_eq!(title, "Refrain", "no script of theirs ran");
    assert_eq!(browser.evaluate("return document.querySelectorAll('img, h1').length"), 1);
    place.sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn every_control_is_reached_by_keys_and_no_page_has_barriers() {
    let place = ServedProject::new();
    let browser = &place.browser;
    browser.picture("empty");
    assert_eq!(browser.barriers(), [""; 0], "of the empty list");
    place.starts(&place.agent("echo at work"));
    assert_eq!(browser.barriers(), [""; 0], "of a loop");
    browser.go(&format!("{}/start", place.url));
    assert_eq!(browser.barriers(), [""; 0], "of the form");
    browser.go(&format!("{}/", place.url));
    browser.shows("job");
    assert_eq!(browser.barriers(), [""; 0], "of the list");
    browser.picture("list");

    // From the top of the page to the loop, by keys alone.
    let is_there = || {
        browser.press(&[Key::Tab]);
        (browser.evaluate("return document.activeElement.innerText") == "job").then_some(())
    };
    eventually("tab leads to the loop", is_there);
    browser.press(&[Key::Enter]);
    browser.shows("Activity of iteration 1");
    for (width, height) in [(360, 780), (1920, 1080)] {
        browser.resize(width, height);
        let is_wide = browser.evaluate("return document.documentElement.scrollWidth > window.innerWidth");
        assert_eq!(is_wide, false, "nothing is pushed out of sight at {width} pixels");
        browser.picture(&format!("loop-at-{width}"));
    }
    place.sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    browser.shows("cancelled");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_browser_that_was_not_let_in_sees_nothing_and_comes_in_by_a_token() {
    let place = ServedProject::new();
    let browser = &place.browser;
    place.starts(&place.agent("echo secret work"));
    let token = place.sandbox.refrain(&["serve", "token"]).with_code(0).stdout.trim().to_owned();
    browser.forget();
    browser.go(&format!("{}/", place.url));
    assert!(!browser.text().contains("job"), "{}", browser.text());
    assert_eq!(browser.barriers(), [""; 0], "of the door");
    browser.fill("input[name=token]", "wrong");
    browser.press(&[Key::Enter]);
    assert!(!browser.text().contains("job"), "{}", browser.text());
    browser.fill("input[name=token]", &token);
    browser.press(&[Key::Enter]);
    browser.shows("job");
    assert!(!browser.url().contains(&token));
    place.sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
}

/// Cookies know no ports: a server of an agent on 127.0.0.1 must not receive the cookie of this server.
#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_server_of_an_agent_does_not_receive_the_session_cookie() {
    let place = ServedProject::new();
    let browser = &place.browser;
    let port = place.url.rsplit(':').next().unwrap();
    assert_eq!(place.url, format!("http://refrain.localhost:{port}"));
    // By its number it is found too, and leads to its name.
    for host in ["127.0.0.1", "localhost"] {
        browser.go(&format!("http://{host}:{port}/?text=job"));
        browser.shows("Loops");
        assert_eq!(browser.url(), format!("{}/?text=job", place.url));
    }
    let agents = TcpListener::bind("127.0.0.1:0").unwrap();
    let its_port = agents.local_addr().unwrap().port();
    let heard = thread::spawn(move || {
        let mut heard = String::new();
        // One request for each name; the browser's further requests come later.
        while heard.matches("GET /theirs").count() < 2 {
            let (mut stream, _) = agents.accept().unwrap();
            let mut bytes = [0; 8 << 10];
            let count = stream.read(&mut bytes).unwrap();
            heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ntheirs");
        }
        heard
    });
    for host in ["127.0.0.1", "localhost"] {
        browser.go(&format!("http://{host}:{its_port}/theirs"));
        browser.shows("theirs");
    }
    let heard = heard.join().unwrap();
    assert!(!heard.to_ascii_lowercase().contains("cookie:"), "{heard}");
    browser.go(&format!("{}/", place.url));
    browser.shows("Loops");
}
