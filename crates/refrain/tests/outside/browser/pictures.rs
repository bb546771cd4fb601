//! Pages that look the same on every run, beside pictures of them that are kept: in one font of Debian
//! (fonts-dejavu-core), light and dark. The browser compares them itself.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use testkit::{Sandbox, write};

use super::ServedProject;
use super::looks::DARK;

/// Only this font, whatever a page asks for.
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>/usr/share/fonts/truetype/dejavu</dir>
<match target="pattern"><edit name="family" mode="assign" binding="strong"><string>DejaVu Sans</string></edit></match>
<match target="font"><edit name="antialias" mode="assign"><bool>true</bool></edit><edit name="hinting" mode="assign"><bool>false</bool></edit><edit name="rgba" mode="assign"><const>none</const></edit></match>
</fontconfig>
"#;

/// How many of a thousand points may differ: versions of Chromium draw edges differently.
const TOLERANCE: f64 = 10.0;

/// Answers how many of a thousand points of two pictures differ by what an eye sees; all, if their sizes differ.
const COMPARE: &str = "
const [one, other, done] = arguments;
const load = text => new Promise((resolve, reject) => { const image = new Image(); image.onload = () => resolve(image); image.onerror = reject; image.src = 'data:image/png;base64,' + text; });
Promise.all([load(one), load(other)]).then(images => {
  const [a, b] = images;
  if (a.width !== b.width || a.height !== b.height) return done(1000);
  const points = images.map(image => { const canvas = new OffscreenCanvas(a.width, a.height); const to = canvas.getContext('2d'); to.drawImage(image, 0, 0); return to.getImageData(0, 0, a.width, a.height).data; });
  let differ = 0;
  for (let at = 0; at < points[0].length; at += 4) differ += [0, 1, 2].some(n => Math.abs(points[0][at + n] - points[1][at + n]) > 64);
  done(1000 * differ / (a.width * a.height));
}).catch(error => done(String(error)));";

/// The configuration of fonts, and the variable that names it.
pub(super) fn fonts(sandbox: &Sandbox) -> (&'static str, PathBuf) {
    let path = sandbox.root().join("fonts.conf");
    write(&path, FONTS);
    ("FONTCONFIG_FILE", path)
}

impl ServedProject {
    /// Compares the page with the picture that is kept.
    #[track_caller]
    fn is_as_pictured(&self, path: &str, shows: &str, name: &str) {
        let browser = &self.browser;
        browser.resize(1000, 800);
        browser.go(&format!("{}{path}", self.url));
        browser.shows(shows);
        // The numbers of the sandbox differ from run to run.
        browser.evaluate("document.activeElement?.blur(); document.querySelectorAll('time').forEach(it => it.textContent = '')");
        let taken = browser.screenshot();
        let kept =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/outside/browser/pictures/{name}.png"));
        browser.picture(name);
        let expected = std::fs::read(&kept).unwrap();
        browser.go("about:blank");
        let texts = [&expected, &taken].map(|bytes| Value::from(STANDARD.encode(bytes)));
        let differ = browser.evaluate_async(COMPARE, texts.into());
        let differ = differ.as_f64().unwrap_or_else(|| panic!("{name}: {differ}"));
        assert!(
            differ <= TOLERANCE,
            "{name}: {differ:.1} of 1000 points differ from {}; target/tmp/browser has what it looks like now",
            kept.display()
        );
    }

    fn are_as_pictured(&self, theme: &str) {
        self.is_as_pictured("/", "No loops here yet", &format!("{theme}-empty"));
        self.is_as_pictured("/_design", "Colours", &format!("{theme}-design"));
    }
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn pages_look_as_they_did_in_the_light() {
    ServedProject::with(&[]).are_as_pictured("light");
}

#[test]
#[ignore = "it needs a browser: cargo xtask e2e browser"]
fn pages_look_as_they_did_in_the_dark() {
    ServedProject::with(&[DARK]).are_as_pictured("dark");
}
