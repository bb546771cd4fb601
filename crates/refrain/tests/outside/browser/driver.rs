//! A browser for tests: headless Chromium, controlled through its driver, and what a person sees of a page. Lookups
//! wait until the element is there.

use std::path::PathBuf;

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use testkit::{Sandbox, Session, axe, eventually, write};
use tokio::runtime::{Builder, Runtime};

use super::pictures;

/// Chromium's options: no network requests of its own, and root may run it.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
];

/// What is wrong with a page by axe-core's rules, a line each.
const CHECK: &str = "const done = arguments[arguments.length - 1]; axe.run().then(found => done(found.violations.map(rule => \
                     rule.id + ': ' + rule.nodes.map(node => node.target + ' ' + node.failureSummary).join('; '))));";

/// A browser, until it is dropped.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    pictures: PathBuf,
    _driver: Session,
}

impl Browser {
    /// A new one, with nothing remembered, and with more options.
    pub(crate) fn open(sandbox: &Sandbox, more: &[&str]) -> Self {
        let (name, fonts) = pictures::fonts(sandbox);
        let driver = sandbox.tool("chromedriver", &["--port=0"]).env(name, &fonts.to_string_lossy()).spawn();
        let port = eventually("chromedriver says its port", || {
            let said = driver.stdout();
            let (_, behind) = said.split_once("started successfully on port ")?;
            behind.split_once('.').map(|(port, _)| port.to_owned())
        });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let profile = format!("--user-data-dir={}", sandbox.root().join("tmp/chromium").display());
        let more = more.iter().copied().chain([profile.as_str()]);
        let options: Vec<_> = OPTIONS.iter().copied().chain(more).collect();
        let wishes = json!({ "goog:chromeOptions": { "args": options } });
        let client = runtime.block_on(
            ClientBuilder::new(HttpConnector::new())
                .capabilities(wishes.as_object().unwrap().clone())
                .connect(&format!("http://127.0.0.1:{port}")),
        );
        Self {
            runtime,
            client: client.unwrap(),
            pictures: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser"),
            _driver: driver,
        }
    }

    pub(crate) fn go(&self, url: &str) {
        self.runtime.block_on(self.client.goto(url)).unwrap();
    }

    /// Deletes the cookies.
    pub(crate) fn forget(&self) {
        self.runtime.block_on(self.client.delete_all_cookies()).unwrap();
    }

    pub(crate) fn reload(&self) {
        self.runtime.block_on(self.client.refresh()).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        self.runtime.block_on(self.client.current_url()).unwrap().to_string()
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        self.runtime.block_on(self.client.set_window_size(width, height)).unwrap();
    }

    /// The element of a selector, once there is one.
    #[track_caller]
    fn find(&self, selector: &str) -> Element {
        let found = self.runtime.block_on(self.client.wait().for_element(Locator::Css(selector)));
        found.unwrap_or_else(|error| panic!("{selector}: {error}\n{}", self.text()))
    }

    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        // A page that is renewed while it is clicked is clicked again.
        eventually(selector, || self.runtime.block_on(self.find(selector).click()).ok());
    }

    /// Opens the dialog of an action in the menu.
    #[track_caller]
    pub(crate) fn asks(&self, action: &str) {
        self.click(".menu summary");
        self.click(&format!(".menu a[href$='/{action}']"));
    }

    /// Types into a field, replacing its content.
    #[track_caller]
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        let field = self.find(selector);
        self.runtime.block_on(async {
            field.clear().await.unwrap();
            field.send_keys(text).await.unwrap();
        });
    }

    /// Presses keys in the focused element.
    pub(crate) fn press(&self, keys: &[Key]) {
        let keys: String = keys.iter().map(|key| char::from(*key)).collect();
        let at = self.runtime.block_on(self.client.active_element()).unwrap();
        self.runtime.block_on(at.send_keys(&keys)).unwrap();
    }

    /// The visible text of the page.
    pub(crate) fn text(&self) -> String {
        self.evaluate("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a person reads that on the page.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        eventually(&format!("the page shows {text:?}; it shows\n{}", self.text()), || {
            self.text().to_lowercase().contains(&text.to_lowercase()).then_some(())
        });
    }

    pub(crate) fn evaluate(&self, script: &str) -> Value {
        self.runtime.block_on(self.client.execute(script, Vec::new())).unwrap_or_default()
    }

    /// The accessibility errors of the page.
    pub(crate) fn barriers(&self) -> Vec<String> {
        let axe = axe().expect("axe-core is not installed: run `cargo xtask e2e browser`");
        let axe = std::fs::read_to_string(axe).unwrap();
        self.runtime.block_on(self.client.execute(&axe, Vec::new())).unwrap();
        let found = self.evaluate_async(CHECK, Vec::new());
        serde_json::from_value(found).unwrap()
    }

    pub(crate) fn evaluate_async(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.runtime.block_on(self.client.execute_async(script, arguments)).unwrap()
    }

    pub(crate) fn screenshot(&self) -> Vec<u8> {
        self.runtime.block_on(self.client.screenshot()).unwrap()
    }

    /// Stores a screenshot of the page as a result of the test.
    pub(crate) fn picture(&self, name: &str) {
        let bytes = self.screenshot();
        std::fs::create_dir_all(&self.pictures).unwrap();
        write(&self.pictures.join(format!("{name}.png")), bytes);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.client.clone().close());
    }
}
