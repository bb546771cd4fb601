//! Markdown of the book as HTML. HTML in it, and links to what no page shows, are left out.

use std::collections::BTreeSet;

use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use refrain_app::book::PAGES;

/// The HTML of a page in this part of the book.
pub(super) fn render(part: &str, text: &str) -> String {
    let mut is_linked = false;
    let shown = |event| match event {
        Event::Html(_) | Event::InlineHtml(_) => None,
        // Of an image its description is shown.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let address = address(part, &dest_url);
            is_linked = address.is_some();
            Some(Event::Start(Tag::Link { link_type, dest_url: address?.into(), title, id }))
        }
        Event::End(TagEnd::Link) if !is_linked => None,
        event => Some(event),
    };
    let mut events: Vec<_> = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(shown).collect();
    let (mut anchors, mut rest) = (BTreeSet::new(), events.as_mut_slice());
    while let Some((event, after)) = rest.split_first_mut() {
        if let Event::Start(Tag::Heading { id, .. }) = event {
            *id = Some(anchor(&mut anchors, after).into());
        }
        rest = after;
    }
    let mut page = String::new();
    push_html(&mut page, events.into_iter());
    page
}

/// The anchor of the heading that these events begin with, as GitHub and mdBook make it.
fn anchor(anchors: &mut BTreeSet<String>, events: &[Event<'_>]) -> String {
    let heading = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let text = heading.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_lowercase()),
        _ => None,
    });
    let text: String = text.collect();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    let plain: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
    let mut anchor = plain.clone();
    let mut number = 0;
    while !anchors.insert(anchor.clone()) {
        number += 1;
        anchor = format!("{plain}-{number}");
    }
    anchor
}

/// The address that a link of a page in this part leads to, if the server or the web has it.
fn address(part: &str, target: &str) -> Option<String> {
    if target.starts_with('#') || target.starts_with("https://") {
        return Some(target.to_owned());
    }
    let (path, anchor) = target.find('#').map_or((target, ""), |at| target.split_at(at));
    let path = match path.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None if part.is_empty() => path.to_owned(),
        None => format!("{part}/{path}"),
    };
    let (part, file) = path.split_once('/')?;
    let page = PAGES.iter().find(|page| page.part == part && file.strip_suffix(".md") == Some(page.topic))?;
    Some(format!("/docs/{}{anchor}", page.topic))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "# A `b` & c\n\n## Same\n\n## Same",
        "<h1 id=\"a-b--c\">A <code>b</code> &amp; c</h1>\n<h2 id=\"same\">Same</h2>\n<h2 id=\"same-1\">Same</h2>\n"
    )]
    #[case("One *two*\n**three**.", "<p>One <em>two</em>\n<strong>three</strong>.</p>\n")]
    #[case("- a\n- b\n\n1. c", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<ol>\n<li>c</li>\n</ol>\n")]
    #[case("6. c", "<ol start=\"6\">\n<li>c</li>\n</ol>\n")]
    #[case(
        "```sh\nls <x> \"y\"\n```",
        "<pre><code class=\"language-sh\">ls &lt;x&gt; \"y\"\n</code></pre>\n"
    )]
    #[case(
        "| k | v |\n|---|---|\n| `q` | quits |",
        "<table><thead><tr><th>k</th><th>v</th></tr></thead><tbody>\n<tr><td><code>q</code></td><td>quits</td></tr>\n</tbody></table>\n"
    )]
    #[case("<!-- not run: why -->\na <b>bold</b> word", "<p>a bold word</p>\n")]
    #[case(
        "[a](loops.md#the-prompt) [b](../how-to/add-gates.md)",
        "<p><a href=\"/docs/loops#the-prompt\">a</a> <a href=\"/docs/add-gates\">b</a></p>\n"
    )]
    #[case("[a](../schema/webhook.json) [b](#c) [d](javascript:alert)", "<p>a <a href=\"#c\">b</a> d</p>\n")]
    fn markdown_becomes_html(#[case] text: &str, #[case] html: &str) {
        assert_eq!(render("reference", text), html);
    }

    #[test]
    fn links_between_pages_lead_to_pages_and_headings() {
        let pages: Vec<_> = PAGES.iter().map(|page| (page, render(page.part, page.text))).collect();
        for (page, html) in &pages {
            for link in
                html.split("href=\"").skip(1).filter_map(|part| part.split_once('"').map(|(link, _)| link))
            {
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let Some(topic) = path.strip_prefix("/docs/") else { continue };
                let (_, target) = pages.iter().find(|(page, _)| page.topic == topic).unwrap();
                let is_there = anchor.is_empty() || target.contains(&format!("id=\"{anchor}\""));
                assert!(is_there, "{}: {link}", page.topic);
            }
            assert!(!html.contains("<!--") && !html.contains("<script"), "{}", page.topic);
        }
        assert!(render("", refrain_app::book::INDEX).contains("href=\"/docs/first-loop\""));
    }
}
