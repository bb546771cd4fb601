//! The pages where less is there, or much more: without a script, with reduced motion, with a thousand loops.

use std::time::Duration;

use fantoccini::key::Key;
use testkit::{Sandbox, eventually};

use super::driver::Browser;
use super::{ServedProject, serve_by};

/// How many loops a page of the list has.
const PART: usize = 100;

/// A project with a loop at work, in a browser that runs no script of a page.
fn without_script() -> ServedProject {
    let place = ServedProject::with(&["--blink-settings=scriptEnabled=false"]);
    let agent = place.agent("echo at work; echo x > made.txt");
    let words = ["start", "--command", &agent, "--name", "job", "--gate", "true", "--detach", "Mend it."];
    place.sandbox.refrain(&words).with_code(0);
    place.sandbox.wait_for_note("prompt-1");
    place
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn every_page_works_without_a_script() {
    let place = without_script();
    let browser = &place.browser;
    browser.go(&format!("{}/?did=pause", place.url));
    browser.shows("Mend it.");
    assert!(browser.url().ends_with("?did=pause"), "a script would have removed that");
    browser.picture("without-script-list");
    browser.fill("#filter", "another");
    browser.press(&[Key::Enter]);
    browser.shows("Nothing matches");
    browser.go(&format!("{}/", place.url));
    browser.click(".go");
    browser.shows("Activity of iteration 1");
    for tab in ["Changes", "Gates", "Prompt", "Report"] {
        let path = browser.evaluate(&format!(
            "return [...document.querySelectorAll('.tabs a')].find(it => it.textContent.startsWith('{tab}')).href"
        ));
        browser.go(path.as_str().unwrap());
        browser.shows("Mend it.");
        let shown = browser.evaluate("return document.querySelector('.tabs [aria-current]').textContent");
        assert!(shown.as_str().unwrap().starts_with(tab), "{shown}");
    }
    // What is asked is a page of its own.
    browser.click(".menu summary");
    browser.click(".menu a[href$='/cancel']");
    browser.shows("It stops for good");
    assert!(browser.url().ends_with("/job/cancel"), "{}", browser.url());
    browser.picture("without-script-cancel");
    browser.click("#ask input[name=now]");
    browser.click("#ask button");
    place.sandbox.wait_for_status("job", "cancelled");
    browser.reload();
    browser.shows("cancelled");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn nothing_moves_where_reduced_motion_is_preferred() {
    let place = ServedProject::with(&["--force-prefers-reduced-motion"]);
    place.starts(&place.agent("echo at work"));
    let moving = place.browser.evaluate("return document.getAnimations().length");
    assert_eq!(moving, 0, "although a loop runs");
    place.sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_list_of_a_thousand_loops_comes_in_parts_as_it_is_scrolled() {
    let place = crowded(1000);
    let browser = &place.browser;
    let rows =
        || browser.evaluate("return document.querySelectorAll('.row').length").as_u64().unwrap() as usize;
    assert_eq!(rows(), PART, "the server sends a part");
    for width in [390, 1280, 2560] {
        browser.resize(width, 1000);
        let is_wide = browser.evaluate("return document.documentElement.scrollWidth > window.innerWidth");
        assert_eq!(is_wide, false, "nothing is pushed out of sight at {width} pixels");
        assert_eq!(browser.barriers(), [""; 0], "at {width} pixels");
        browser.picture(&format!("thousand-{width}"));
    }
    eventually("the next parts follow", || {
        browser.evaluate("window.scrollTo(0, document.body.scrollHeight)");
        (rows() >= 4 * PART).then_some(())
    });
    let twice = browser.evaluate(
        "const all = [...document.querySelectorAll('.row .go')].map(it => it.id); return all.length - new Set(all).size",
    );
    assert_eq!(twice, 0, "each loop once");
    browser.evaluate("window.scrollTo(0, 0)");
    browser.fill("#filter", "claude-00042");
    browser.press(&[Key::Enter]);
    browser.shows("claude-00042");
    assert_eq!(rows(), 1, "the server searches all of them");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_list_of_ten_thousand_loops_is_sent_in_windows() {
    let place = crowded(10_000);
    let browser = &place.browser;
    let rows =
        || browser.evaluate("return document.querySelectorAll('.row').length").as_u64().unwrap() as usize;
    assert_eq!(rows(), PART, "the server sends a part");
    browser.shows("Page 1 of 100");
    eventually("the next parts follow", || {
        browser.evaluate("window.scrollTo(0, document.body.scrollHeight)");
        (rows() >= 5 * PART).then_some(())
    });
    assert!(rows() < 10 * PART, "and no more than was scrolled to: {}", rows());
    browser.go(&format!("{}/?page=100", place.url));
    browser.shows("Page 100 of 100");
    assert_eq!(rows(), PART, "the last ones");
    browser.picture("ten-thousand-last");
}

/// A server of that many loops, which an example of refrain-engine makes.
#[expect(clippy::disallowed_methods, reason = "`cargo xtask e2e browser` says where the example is")]
fn crowded(loops: usize) -> ServedProject {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_refrain"));
    let go = sandbox.gate("go");
    let catalog = std::env::var("REFRAIN_E2E_CATALOG").expect("run `cargo xtask e2e browser`");
    let base = sandbox.root().join("many");
    let at = |path: &str| base.join(path).to_str().unwrap().to_owned();
    let home = [
        ("HOME", at("home")),
        ("XDG_DATA_HOME", at("home/.local/share")),
        ("XDG_STATE_HOME", at("home/.local/state")),
        ("XDG_CONFIG_HOME", at("home/.config")),
    ]
    .map(|(name, path)| (name.to_owned(), path));
    std::fs::create_dir_all(at("home")).unwrap();
    // Each is signed, which takes a test's build of the program a while.
    let made = sandbox.tool(&catalog, &[&at(""), &loops.to_string()]).envs(&home).spawn();
    made.wait_at_most(Duration::from_mins(5)).with_code(0);
    let project = at("projects/project-00");
    let words = ["-C", &project, "serve", "--port", "0", "--json"];
    let (server, said) = serve_by(sandbox.command(&words).envs(&home));
    let browser = Browser::open(&sandbox, &[]);
    browser.go(said["open"].as_str().unwrap());
    browser.shows("Page 1 of");
    let url = said["url"].as_str().unwrap().to_owned();
    ServedProject { browser, server, url, go, sandbox }
}
