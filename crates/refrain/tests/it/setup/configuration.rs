//! The documentation of the configuration. All else is in `scenarios/configuration`.

use crate::sandbox;

#[test]
fn every_piece_of_toml_in_the_documentation_can_be_used() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let pieces: Vec<_> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(pieces.len() >= 6, "{}", pieces.len());
    let sandbox = sandbox();
    let folder = sandbox.root().join("home/config/refrain");
    std::fs::create_dir_all(&folder).unwrap();
    for piece in pieces {
        testkit::write(&folder.join("config.toml"), piece);
        let shown = sandbox.refrain(&["config", "show", "--json"]).with_code(0).json();
        let keys = piece.lines().filter(|line| line.contains(" = ")).count();
        let given = shown["values"].as_array().unwrap().iter().filter(|entry| entry["origin"] != "default");
        assert!(given.count() >= keys, "{piece}");
    }
}
