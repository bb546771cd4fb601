//! Markdown of the book as HTML. HTML in it, and links to what no page shows, are left out.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use refrain_app::book::PAGES;

/// The HTML of a page in this part of the book.
pub(super) fn render(part: &str, text: &str) -> String {
    let mut page = HtmlPage { part, ..HtmlPage::default() };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(tag) => page.start(&tag),
            Event::End(tag) => page.end(tag),
            Event::Text(text) => page.text(&text),
            Event::Code(code) => {
                page.html += "<code>";
                page.text(&code);
                page.html += "</code>";
            }
            Event::SoftBreak => page.html += "\n",
            Event::HardBreak => page.html += "<br>",
            Event::Rule => page.html += "<hr>\n",
            _ => {}
        }
    }
    page.html
}

#[derive(Default)]
struct HtmlPage<'a> {
    part: &'a str,
    html: String,
    /// Where the heading that is being read begins, and its text so far.
    heading: Option<(usize, String)>,
    anchors: BTreeSet<String>,
    is_head: bool,
    is_linked: bool,
}

impl HtmlPage<'_> {
    fn text(&mut self, text: &str) {
        self.html += &escaped(text);
        if let Some((_, heading)) = &mut self.heading {
            heading.push_str(text);
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.heading = Some((self.html.len(), String::new())),
            Tag::Link { dest_url, .. } => {
                let address = address(self.part, dest_url);
                self.is_linked = address.is_some();
                if let Some(address) = address {
                    self.html += &format!("<a href=\"{}\">", escaped(&address));
                }
            }
            Tag::TableHead => {
                self.is_head = true;
                self.html += "<thead><tr>";
            }
            tag => {
                let name = self.element(tag.to_end());
                if !name.is_empty() {
                    self.html += &format!("<{name}>");
                }
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => {
                let Some((at, text)) = self.heading.take() else { return };
                let anchor = self.anchor(&text);
                self.html.insert_str(at, &format!("<{level} id=\"{}\">", escaped(&anchor)));
                self.html += &format!("</{level}>\n");
            }
            TagEnd::Link if self.is_linked => self.html += "</a>",
            TagEnd::TableHead => {
                self.is_head = false;
                self.html += "</tr></thead>\n";
            }
            tag => {
                let name = self.element(tag);
                let after = if matches!(name, "" | "em" | "strong" | "td" | "th") { "" } else { "\n" };
                if !name.is_empty() {
                    self.html += &format!("</{name}>{after}");
                }
            }
        }
    }

    /// The element that a block or span becomes; empty for none.
    fn element(&self, tag: TagEnd) -> &'static str {
        match tag {
            TagEnd::Paragraph => "p",
            TagEnd::BlockQuote(_) => "blockquote",
            TagEnd::CodeBlock => "pre",
            TagEnd::List(true) => "ol",
            TagEnd::List(false) => "ul",
            TagEnd::Item => "li",
            TagEnd::Emphasis => "em",
            TagEnd::Strong => "strong",
            TagEnd::Table => "table",
            TagEnd::TableRow => "tr",
            TagEnd::TableCell if self.is_head => "th",
            TagEnd::TableCell => "td",
            _ => "",
        }
    }

    /// The anchor of a heading, as GitHub and mdBook make it.
    fn anchor(&mut self, heading: &str) -> String {
        let heading = heading.to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let plain: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut anchor = plain.clone();
        let mut number = 0;
        while !self.anchors.insert(anchor.clone()) {
            number += 1;
            anchor = format!("{plain}-{number}");
        }
        anchor
    }
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
    #[case("- a\n- b\n\n1. c", "<ul><li>a</li>\n<li>b</li>\n</ul>\n<ol><li>c</li>\n</ol>\n")]
    #[case("```sh\nls <x> \"y\"\n```", "<pre>ls &lt;x&gt; &quot;y&quot;\n</pre>\n")]
    #[case(
        "| k | v |\n|---|---|\n| `q` | quits |",
        "<table><thead><tr><th>k</th><th>v</th></tr></thead>\n<tr><td><code>q</code></td><td>quits</td></tr>\n</table>\n"
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
