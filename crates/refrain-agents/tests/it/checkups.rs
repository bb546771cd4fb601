//! Information from each agent before it is run: answers recorded from the real programs, and files as they write
//! them.

use std::ffi::OsString;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::checkup::AgentDirs;
use refrain_agents::output_parser;
use refrain_core::spec::AgentKind;
use refrain_core::view::checkup::{Grade, Subject};
use refrain_proc::probe::ProbeOutput;
use rstest::rstest;

/// A home with a project in it, and these files.
struct Scene {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        fs::create_dir_all(root.join("work/sub")).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = text.replace("ROOT", root.as_str());
            std::io::Write::write_all(&mut fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
        }
        Self { _dir: dir, root }
    }

    /// The findings of one subject, as grade and text.
    fn finds(
        &self,
        kind: AgentKind,
        subject: Subject,
        env: &[(&str, &str)],
        answers: &[Option<ProbeOutput>],
    ) -> Vec<(Grade, String)> {
        let mut all: Vec<(OsString, OsString)> = vec![("HOME".into(), self.root.as_str().into())];
        all.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        let place = AgentDirs { env: &all, dir: &self.root.join("work/sub"), root: &self.root.join("work") };
        let findings = output_parser::adapter(kind).unwrap().findings(&place, answers);
        findings
            .into_iter()
            .filter(|finding| finding.subject == subject)
            .inspect(|finding| assert!(finding.grade == Grade::Ok || finding.advice.is_some(), "{finding:?}"))
            .map(|finding| (finding.grade, finding.found))
            .collect()
    }
}

fn said(code: i32, stdout: &str, stderr: &str) -> Option<ProbeOutput> {
    Some(ProbeOutput { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() })
}

#[rstest]
#[case(
    said(0, r#"{"loggedIn": true, "authMethod": "oauth_token", "loginExpiresAt": null}"#, ""),
    Grade::Ok,
    "oauth_token"
)]
#[case(said(1, r#"{"loggedIn": false, "authMethod": "none"}"#, ""), Grade::Problem, "not logged in")]
#[case(said(1, "error: unknown command 'auth'", ""), Grade::Warning, "cannot be read")]
#[case(None, Grade::Warning, "in time")]
fn claude_says_whether_it_is_logged_in(
    #[case] answer: Option<ProbeOutput>,
    #[case] grade: Grade,
    #[case] part: &str,
) {
    let found = Scene::new(&[]).finds(AgentKind::Claude, Subject::Login, &[], &[answer]);
    assert_eq!((found.len(), found[0].0), (1, grade));
    assert!(found[0].1.contains(part), "{found:?}");
}

const ALLOWS: &str = r#"{"permissions": {"allow": ["Bash(make:*)"]}}"#;

#[rstest]
#[case(&[], None)]
#[case(&[("work/sub/.claude/settings.json", ALLOWS)], Some("was never trusted"))]
#[case(&[("work/sub/.claude/settings.local.json", ALLOWS), (".claude.json", r#"{"projects": {"ROOT/work": {"hasTrustDialogAccepted": true}}}"#)], None)]
#[case(&[("work/sub/.claude/settings.json", ALLOWS), (".claude.json", r#"{"projects": {"ROOT/work": {"hasTrustDialogAccepted": false}}}"#)], Some("was never trusted"))]
#[case(&[(".claude/settings.json", r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#)], Some("--permissions full"))]
#[case(&[(".claude/settings.json", "no JSON"), (".claude.json", "[]")], None)]
fn claude_settings_that_stand_in_the_way(#[case] files: &[(&str, &str)], #[case] part: Option<&str>) {
    let found = Scene::new(files).finds(AgentKind::Claude, Subject::Permissions, &[], &[None]);
    match part {
        None => assert_eq!(found, []),
        Some(part) => assert!(found.len() == 1 && found[0].1.contains(part), "{found:?}"),
    }
}

const OWN_PROVIDER: &str = "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\n";

#[rstest]
#[case(&[], &[], said(0, "", "WARNING: proceeding\nLogged in using ChatGPT\n"), Grade::Ok, "Logged in using ChatGPT")]
#[case(&[], &[], said(0, "", "API key configured - sk-12***3456\n"), Grade::Ok, "API key configured")]
#[case(&[], &[], said(1, "", "Not logged in\n"), Grade::Problem, "not logged in")]
#[case(&[], &[("CODEX_API_KEY", "k")], said(1, "", "Not logged in\n"), Grade::Ok, "CODEX_API_KEY")]
#[case(&[], &[("CODEX_API_KEY", "")], said(1, "", "Not logged in\n"), Grade::Problem, "not logged in")]
#[case(&[(".codex/config.toml", OWN_PROVIDER)], &[], said(1, "", "Not logged in\n"), Grade::Ok, "mine")]
#[case(&[(".codex/config.toml", "model_provider = \"openai\"\n")], &[], said(1, "", "Not logged in\n"), Grade::Problem, "not logged in")]
#[case(&[], &[], None, Grade::Warning, "in time")]
fn codex_says_whether_it_is_logged_in(
    #[case] files: &[(&str, &str)],
    #[case] env: &[(&str, &str)],
    #[case] answer: Option<ProbeOutput>,
    #[case] grade: Grade,
    #[case] found: &str,
) {
    let all = Scene::new(files).finds(AgentKind::Codex, Subject::Login, env, &[answer, None]);
    assert_eq!((all.len(), all[0].0), (1, grade), "{all:?}");
    assert!(all[0].1.contains(found) && !all[0].1.contains("3456"), "{all:?}");
}

#[test]
fn codex_passes_over_the_configuration_of_a_folder_that_is_not_trusted() {
    let scene = Scene::new(&[("work/sub/.codex/config.toml", "")]);
    let found = scene.finds(AgentKind::Codex, Subject::Permissions, &[], &[None, said(0, "", "")]);
    assert_eq!(found.iter().map(|(grade, _)| *grade).collect::<Vec<_>>(), [Grade::Ok, Grade::Warning]);
    let trusted = "[projects.\"ROOT/work\"]\ntrust_level = \"trusted\"\n";
    let scene = Scene::new(&[("work/sub/.codex/config.toml", ""), (".codex/config.toml", trusted)]);
    let found =
        scene.finds(AgentKind::Codex, Subject::Permissions, &[], &[None, said(1, "", "no namespaces")]);
    assert!(found.len() == 1 && found[0].1.ends_with(": no namespaces"), "{found:?}");
}

const BY_KEY: &str = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#;
const BY_LOGIN: &str = r#"{"security": {"auth": {"selectedType": "oauth-personal"}}}"#;

#[rstest]
#[case(&[], &[], Grade::Problem, "not logged in")]
#[case(&[], &[("GEMINI_API_KEY", "k")], Grade::Ok, "gemini-api-key")]
#[case(&[], &[("GOOGLE_GENAI_USE_VERTEXAI", "true"), ("GOOGLE_API_KEY", "k")], Grade::Ok, "vertex-ai")]
#[case(&[], &[("GOOGLE_GENAI_USE_VERTEXAI", "true"), ("GOOGLE_CLOUD_PROJECT", "p")], Grade::Warning, "GOOGLE_CLOUD_LOCATION")]
#[case(&[(".gemini/settings.json", BY_KEY)], &[], Grade::Warning, "no GEMINI_API_KEY")]
#[case(&[(".gemini/settings.json", BY_KEY), ("work/.env", "export GEMINI_API_KEY=k\n")], &[], Grade::Ok, "gemini-api-key")]
#[case(&[(".gemini/settings.json", BY_LOGIN)], &[("GEMINI_API_KEY", "k")], Grade::Warning, "oauth_creds.json")]
#[case(&[(".gemini/settings.json", BY_LOGIN), (".gemini/oauth_creds.json", "{}")], &[], Grade::Ok, "oauth-personal")]
#[case(&[("elsewhere/.gemini/settings.json", BY_KEY)], &[("GEMINI_CLI_HOME", "ROOT/elsewhere"), ("GEMINI_API_KEY", "k")], Grade::Ok, "gemini-api-key")]
fn gemini_goes_by_its_settings_and_then_by_variables(
    #[case] files: &[(&str, &str)],
    #[case] env: &[(&str, &str)],
    #[case] grade: Grade,
    #[case] part: &str,
) {
    let scene = Scene::new(files);
    let env: Vec<_> =
        env.iter().map(|(name, value)| (*name, value.replace("ROOT", scene.root.as_str()))).collect();
    let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let found = scene.finds(AgentKind::Gemini, Subject::Login, &env, &[]);
    assert_eq!((found.len(), found[0].0), (1, grade), "{found:?}");
    assert!(found[0].1.contains(part), "{found:?}");
}

#[test]
fn gemini_settings_that_forbid_a_mode_are_reported() {
    let files = [(".gemini/settings.json", r#"{"security": {"disableYoloMode": true}}"#)];
    let found = Scene::new(&files).finds(AgentKind::Gemini, Subject::Permissions, &[], &[]);
    assert_eq!(found.iter().map(|(grade, _)| *grade).collect::<Vec<_>>(), [Grade::Warning, Grade::Ok]);
    let trusted = [(".gemini/trustedFolders.json", r#"{"ROOT/work": "TRUST_FOLDER"}"#)];
    assert_eq!(Scene::new(&trusted).finds(AgentKind::Gemini, Subject::Permissions, &[], &[]), []);
    let distrusted = [(".gemini/trustedFolders.json", r#"{"ROOT/work": "DO_NOT_TRUST"}"#)];
    assert_eq!(Scene::new(&distrusted).finds(AgentKind::Gemini, Subject::Permissions, &[], &[]).len(), 1);
}
