//! The pages in light and in dark, on wide and on narrow screens, with accessibility checks; a plan, and keyboard use.

use fantoccini::key::Key;
use serde_json::Value;
use testkit::{Signal, eventually, write};

use super::ServedProject;

/// A browser that prefers a dark scheme.
pub(super) const DARK: &str = "--blink-settings=preferredColorScheme=0";
const OPEN_PALETTE: &str =
    "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }))";
/// The worker of the plan: it gives up the second task, and in each other one waits for its gate.
const WORKER: &str = "task=$(git branch --show-current); task=${task##*/}; number=${task%%-*}
[ $number = 2 ] && { echo 'TASK_BLOCKED: there is no oak'; exit 0; }
echo \"sawing for $number\"; echo x > $NOTES/at-$number
echo x > f$number.txt; read -r _ < $GATES/go; echo TASK_COMPLETE";

impl ServedProject {
    /// Starts a plan of four tasks, of which one is given up, and waits until the first is worked on.
    fn plans(&self) {
        self.plans_with(|id| format!("Saw board {id} of the floor"));
    }

    /// The same, with titles of its own.
    fn plans_with(&self, title: impl Fn(u32) -> String) {
        let task = |id: u32, after: &[u32]| {
            let title = Value::from(title(id));
            format!(r#"{{"id": {id}, "title": {title}, "status": "pending", "depends_on": {after:?}}}"#)
        };
        let tasks = [task(1, &[]), task(2, &[]), task(3, &[1]), task(4, &[2, 3])].join(",");
        let folder = self.sandbox.project().join(".scud/tasks");
        std::fs::create_dir_all(&folder).unwrap();
        write(&folder.join("floor.json"), format!("{{\"tag\": \"floor\", \"tasks\": [{tasks}]}}\n"));
        self.sandbox.git(&["add", "-A"]);
        self.sandbox.git(&["commit", "-qm", "Plan"]);
        let agent = self.sandbox.agent("worker", WORKER);
        let words = ["plan", "run", "--tag", "floor", "--command", &agent, "--name", "floor"];
        self.sandbox.refrain(&[&words[..], &["--verify", "true", "--detach"]].concat()).with_code(0);
        self.sandbox.wait_for_note("at-1");
    }

    /// A loop whose journal is none.
    fn damages(&self) {
        let agent = self.sandbox.agent("brief", "echo done; echo '<promise>COMPLETE</promise>'");
        let words = ["start", "--command", &agent, "--name", "torn", "--quiet", "Mend it."];
        self.sandbox.refrain(&words).with_code(0);
        write(&self.sandbox.loop_dir("torn").join("journal.jsonl"), "no journal\n");
    }

    /// A loop in a second project, so that the list has a chip for each.
    fn has_another_project(&self) {
        let other = self.sandbox.root().join("orchard");
        std::fs::create_dir_all(&other).unwrap();
        let (other, agent) = (other.to_str().unwrap(), self.sandbox.agent("far", "echo at work"));
        self.sandbox.git(&["init", "--quiet", other]);
        let words =
            ["-C", other, "start", "--command", &agent, "--name", "far", "-m", "1", "--quiet", "Prune."];
        self.sandbox.refrain(&words).with_code(10);
    }

    /// Looks at a page, wide and narrow: nothing overlaps, nothing is pushed out of sight.
    #[track_caller]
    fn looks(&self, path: &str, shows: &str, name: &str) {
        let browser = &self.browser;
        browser.resize(1280, 900);
        browser.go(&format!("{}{path}", self.url));
        browser.shows(shows);
        for (width, height) in [(1280, 1100), (2560, 1300), (360, 2400)] {
            browser.resize(width, height);
            assert_eq!(browser.barriers(), [""; 0], "of {name} at {width} pixels");
            let is_wide = browser.evaluate("return document.documentElement.scrollWidth > window.innerWidth");
            assert_eq!(is_wide, false, "{name} is pushed out of sight at {width} pixels");
            browser.picture(&format!("{name}-{width}"));
        }
    }

    /// Looks at every page.
    fn looks_at_all(&self, theme: &str) {
        self.damages();
        self.plans();
        self.has_another_project();
        let agent = self.agent("echo 'fn main() {}' > made.rs; echo at work");
        self.starts(&agent);
        let browser = &self.browser;
        let project = browser.evaluate("return document.body.dataset.project");
        let project = project.as_str().unwrap();
        let named = |page: &str| format!("{theme}-{page}");
        self.looks("/", "orchard", &named("list"));
        self.looks(&format!("/?project={project}"), "torn", &named("project"));
        for words in [&["steer", "job", "Mind the dates: they are local."][..], &["pause", "job"]] {
            self.sandbox.refrain(words).with_code(0);
        }
        self.looks(&format!("/p/{project}/job"), "it pauses after this iteration", &named("loop"));
        browser.click("form[action$='/take-back'] button");
        browser.shows("Taken back.");
        self.looks(&format!("/p/{project}/job/diff"), "fn main", &named("diff"));
        self.looks(&format!("/p/{project}/job/gates"), "No gate has run", &named("gates"));
        self.looks(&format!("/p/{project}/job/prompt"), "Mend all of it", &named("prompt"));
        self.looks(&format!("/p/{project}/job/report"), "Started", &named("report"));
        self.looks(&format!("/p/{project}/job/cancel"), "It stops for good", &named("cancel"));
        for (page, shows) in [
            ("usage", "by day"),
            ("memory", "Memory"),
            ("doctor", "file-system"),
            ("settings", "start.max-iterations"),
        ] {
            self.looks(&format!("/{page}"), shows, &named(page));
        }
        self.looks("/search?text=work", "at work", &named("search"));
        self.looks(&format!("/compare?a={project}/job&b={project}/job"), "Tokens in", &named("compare"));
        self.looks("/_design", "Colours", &named("design"));
        self.looks(&format!("/p/{project}/job/attempts/1/logs/output"), "at work", &named("log"));
        self.looks(&format!("/p/{project}/job/attempts/1/activity?find=WORK"), "1 found", &named("found"));
        self.looks(&format!("/p/{project}/floor"), "there is no oak", &named("plan"));
        browser.resize(1280, 1100);
        browser.click(".new-task summary");
        browser.fill("#add-title", "Oil the floor");
        assert_eq!(browser.barriers(), [""; 0], "of the form of a task");
        browser.picture(&named("plan-add"));
        browser.click(".new-task button");
        browser.shows("Oil the floor");
        browser.go(&format!("{}/", self.url));
        browser.evaluate(OPEN_PALETTE);
        browser.fill("#palette-field", "floor");
        browser.shows("Search everything for");
        eventually("the plan is offered first", || {
            let first =
                browser.evaluate("return document.querySelector('#palette-list li')?.innerText ?? ''");
            first.as_str()?.starts_with("floor").then_some(())
        });
        assert_eq!(browser.barriers(), [""; 0], "of the palette");
        browser.picture(&named("palette"));
        browser.press(&[Key::Enter]);
        browser.shows("there is no oak");
        self.looks("/start", "Where it works", &named("start"));
        browser.fill("#goal", "Mend it.");
        browser.fill("#workspace", "/nowhere");
        browser.click("button[value=start]");
        browser.shows("accepted: a folder");
        assert_eq!(browser.evaluate("return document.activeElement.id"), "workspace", "where it is wrong");
        assert_eq!(browser.barriers(), [""; 0], "of a form with an error");
        browser.picture(&named("start-wrong"));
        browser.fill("#workspace", self.sandbox.project().to_str().unwrap());
        browser.fill("#command", "true");
        browser.click("button[value=preview]");
        browser.shows("What will run");
        browser.picture(&named("start-preview"));
        for id in ["job", "floor"] {
            self.sandbox.refrain(&["cancel", id, "--now"]);
        }
        self.sandbox.refrain(&["plan", "cancel", "floor", "--now"]);
    }
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn every_page_is_accessible_in_the_light_scheme() {
    ServedProject::new().looks_at_all("light");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn every_page_is_accessible_in_the_dark_scheme() {
    let place = ServedProject::with(&[DARK]);
    let is_dark = place.browser.evaluate("return matchMedia('(prefers-color-scheme: dark)').matches");
    assert_eq!(is_dark, true);
    place.looks_at_all("dark");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn goals_of_any_script_and_length_fit_every_width() {
    let place = ServedProject::new();
    let agent = place.sandbox.agent("brief", "echo done; echo '<promise>COMPLETE</promise>'");
    let long = "Donaudampfschifffahrt".repeat(20);
    let endless = "Mend <b>all</b> of it. ".repeat(450);
    let goals = [
        ("right-to-left", "\u{5ea}\u{5e7}\u{5df} parse.py: \u{623}\u{635}\u{644}\u{62d}"),
        ("long", long.as_str()),
        ("hostile", r#"</title><script>document.title=1</script>"><svg onload=document.title=2>"#),
        ("endless", endless.as_str()),
        ("controls", "Mend\u{1b}[31m it\u{7}\u{202e} now"),
    ];
    for (name, goal) in goals {
        let words = ["start", "--command", &agent, "--name", name, "--quiet", goal];
        place.sandbox.refrain(&words).with_code(0);
    }
    place.looks("/", "right-to-left", "goals");
    let loops = place.browser.evaluate("return document.querySelector('.go').pathname");
    let (base, _) = loops.as_str().unwrap().rsplit_once('/').unwrap();
    for (name, _) in goals {
        place.looks(&format!("{base}/{name}"), "unverified", &format!("goal-{name}"));
    }
    let browser = &place.browser;
    assert_eq!(browser.evaluate("return document.title"), "controls · Refrain");
    assert!(!browser.text().contains(['\u{1b}', '\u{7}']), "{:?}", browser.text());
    let isolated = "return [...document.querySelectorAll('.goal')].every(it => getComputedStyle(it).unicodeBidi.startsWith('isolate'))";
    assert_eq!(browser.evaluate(isolated), true, "a goal turns nothing beside it");
    browser.go(&format!("{}{base}/hostile", place.url));
    assert_eq!(browser.evaluate("return document.title"), "hostile · Refrain");
    // The palette names them all, as text.
    browser.evaluate(OPEN_PALETTE);
    browser.fill("#palette-field", "<svg onload=document.title=3>");
    browser.shows("Search everything for “<svg onload");
    assert_eq!(browser.evaluate("return document.querySelectorAll('dialog svg, dialog b').length"), 0);
    assert_eq!(browser.evaluate("return document.title"), "hostile · Refrain");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_task_is_tried_again_and_another_is_blocked_from_the_page_of_its_plan_whatever_their_titles_say() {
    let place = ServedProject::new();
    let browser = &place.browser;
    place.plans_with(|id| match id {
        1 => "<script>document.title=1</script><img src=x onerror=document.title=2>".to_owned(),
        2 => "\u{5ea}\u{5e7}\u{5df} \u{623}\u{635}\u{644}\u{62d} parse.py".to_owned(),
        3 => "Donaudampfschifffahrt".repeat(40),
        _ => format!("Saw board {id}"),
    });
    browser.go(&format!("{}/", place.url));
    browser.click("a.go[href$='/floor']");
    browser.shows("there is no oak");
    browser.shows("<script>document.title=1</script>");
    place.looks(browser.evaluate("return location.pathname").as_str().unwrap(), "Wave 1", "plan-hostile");
    assert_eq!(browser.evaluate("return document.title").as_str().unwrap().matches(['1', '2']).count(), 0);
    browser.click("summary[aria-label='Actions for task 4']");
    browser.click("button[aria-label='Block task 4']");
    browser.shows("the plan does not start the task");
    browser.click("summary[aria-label='Actions for task 2']");
    browser.click("button[aria-label='Retry task 2']");
    browser.shows("The task is tried again");
    let task = |id: u64| {
        let file = std::fs::read_to_string(place.sandbox.project().join(".scud/tasks/floor.json")).unwrap();
        let tasks: Value = serde_json::from_str(&file).unwrap();
        let all = tasks["tasks"].as_array().unwrap();
        all.iter().find(|it| it["id"] == id).unwrap()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(task(4), "blocked", "as its file says");
    assert_ne!(task(2), "blocked", "as its file says");
    place.sandbox.refrain(&["plan", "cancel", "floor", "--now"]);
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn agents_that_are_found_are_cards_with_a_forecast_and_a_chart_says_the_value_under_the_pointer() {
    let place = ServedProject::with_agents(&["claude", "codex"]);
    let browser = &place.browser;
    let brief = place.sandbox.agent("brief", "echo done; echo '<promise>COMPLETE</promise>'");
    for name in ["one", "two", "three"] {
        let words = ["start", "--command", &brief, "--name", name, "--gate", "true", "--quiet", "Mend it."];
        place.sandbox.refrain(&words).with_code(0);
    }
    browser.go(&format!("{}/start", place.url));
    let cards = "return [...document.querySelectorAll('input[name=agent]')].map(it => it.value).join(' ')";
    assert_eq!(browser.evaluate(cards), "claude codex");
    browser.picture("agent-cards");
    browser.fill("#goal", "Mend it again.");
    browser.fill("#command", &brief);
    browser.fill("#gates", "true");
    browser.click("button[value=preview]");
    browser.shows("Similar loops took");

    browser.go(&format!("{}/usage", place.url));
    browser.shows("Attempts by day");
    let under = "const place = [...document.querySelectorAll('.chart .hit')].at(-1).getBoundingClientRect();
        const at = document.elementFromPoint(place.x + place.width / 2, place.y + place.height / 2);
        return at.closest('g').querySelector('title').textContent";
    let said = browser.evaluate(under);
    assert!(said.as_str().unwrap_or_default().contains("3 attempts"), "{said}");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn a_plan_is_shown_live_and_controlled_by_keys_alone() {
    let place = ServedProject::new();
    let browser = &place.browser;
    place.plans();
    browser.go(&format!("{}/", place.url));
    browser.shows("floor");
    let reach = |text: &str| {
        eventually(&format!("tab leads to {text}"), || {
            browser.press(&[Key::Tab]);
            let script = "const at = document.activeElement; return at.innerText || at.name";
            (browser.evaluate(script) == text).then_some(())
        });
    };
    reach("floor");
    browser.press(&[Key::Enter]);
    for part in ["Wave 1", "there is no oak", "\u{2190} 2 3", "attempt 1 is running", "1/3"] {
        browser.shows(part);
    }
    // To the loop of the task that is worked on, and back.
    let of_task = browser.evaluate("return document.querySelector('.task.in-progress a').innerText");
    reach(of_task.as_str().unwrap());
    browser.press(&[Key::Enter]);
    browser.shows("Activity of iteration 1");
    browser.evaluate("history.back()");
    browser.shows("Critical path");
    place.go.let_one_pass();
    place.sandbox.wait_for_note("at-3");
    browser.shows("1/2 tasks");
    reach("More");
    browser.press(&[Key::Enter]);
    reach("Cancel…");
    browser.press(&[Key::Enter]);
    eventually("the dialog has the focus", || {
        (browser.evaluate("return document.activeElement.name") == "now").then_some(())
    });
    browser.press(&[Key::Space]);
    browser.press(&[Key::Tab]);
    browser.press(&[Key::Enter]);
    browser.shows("cancelled");
    place.server.signal(Signal::TERM);
    place.server.wait().with_code(0);
}
