//! Small things that are said in many places, said alike.

use owo_colors::OwoColorize;
use refrain_core::agent::Usd;
use refrain_core::view::{StatusWord, Usage};

/// So many of something.
pub(crate) fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// So many iterations.
pub(crate) fn iterations(count: u32) -> String {
    counted(count, "iteration", "iterations")
}

/// A large number, short: `940`, `12.3k`, `4.1M`.
pub(crate) fn thousands(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// What was used, as far as it is known; nothing where nothing is, or nothing was.
pub(crate) fn used(usage: &Usage) -> String {
    let mut parts = Vec::new();
    if let Some(input) = usage.input_tokens.filter(|input| *input > 0) {
        let cached = usage.cached_input_tokens.filter(|cached| *cached > 0);
        let cached = cached.map(|cached| format!(" ({} cached)", thousands(cached))).unwrap_or_default();
        parts.push(format!("{}{cached} tokens in", thousands(input)));
    }
    if let Some(output) = usage.output_tokens.filter(|output| *output > 0) {
        parts.push(format!("{} out", thousands(output)));
    }
    if let Some(cost) = usage.cost_usd.filter(|cost| *cost > 0.0) {
        parts.push(Usd::from(cost).to_string());
    }
    let at_least = if usage.at_least && !parts.is_empty() { "at least " } else { "" };
    format!("{at_least}{}", parts.join(", "))
}

/// The words behind a comma, where there are any.
pub(crate) fn after(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(", {words}") }
}

/// Where a loop is, of how many iterations it may have.
pub(crate) fn progress(iteration: u32, cap: Option<u32>) -> String {
    match cap {
        Some(cap) => format!("{iteration}/{cap}"),
        None => format!("{iteration}/∞"),
    }
}

/// `text`, in the colour of how a loop stands: done, on its way, in need of a look.
pub(crate) fn coloured(status: StatusWord, text: &str) -> String {
    match status {
        StatusWord::Completed => text.green().bold().to_string(),
        StatusWord::Running | StatusWord::Waiting => text.cyan().to_string(),
        StatusWord::Failed | StatusWord::Crashed => text.red().bold().to_string(),
        StatusWord::Paused
        | StatusWord::Blocked
        | StatusWord::Cancelled
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut
        | StatusWord::Stuck => text.yellow().bold().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural_and_no_cap_is_endless() {
        assert_eq!([0, 1, 2].map(iterations), ["0 iterations", "1 iteration", "2 iterations"]);
        assert_eq!(counted(3, "process", "processes"), "3 processes");
        assert_eq!([progress(3, Some(20)), progress(3, None)], ["3/20", "3/∞"]);
    }
}
