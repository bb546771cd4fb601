//! `--success-command`: a required gate that completes the loop by itself, without the agent's claim.

use serde_json::json;

use crate::surfaces::mcp::does;
use crate::{plain_folder, sandbox};

/// Passes once the agent has written three lines.
const THREE: &str = "test $(wc -l < work.txt) -ge 3";

#[test]
fn a_tool_starts_it_too() {
    for sandbox in [sandbox(), plain_folder()] {
        let agent = sandbox.agent("worker", "echo w >> work.txt");
        let asked = json!({
            "goal": "g", "name": "job", "command": agent, "success_command": THREE, "max_iterations": 10
        });
        does(&sandbox, "loop_start", asked);
        let status = sandbox.wait_for_status("job", "completed");
        assert_eq!((&status["iteration"], &status["verified"]), (&json!(3), &json!(true)));
    }
}
