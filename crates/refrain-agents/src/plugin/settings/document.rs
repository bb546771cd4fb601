//! A text with the positions of its values, and inserting into it in its own style.

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use refrain_core::splice::Splice;

use super::{Edit, Kind, SettingsError};

/// Some editors write it at the start of a file, and some programs accept it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A parsed text. All positions refer to [`Document::text`].
pub(super) struct Document<'t> {
    /// The offset of `text` in the whole, in bytes.
    pub(super) start: usize,
    pub(super) text: &'t str,
    /// None in an empty text.
    pub(super) value: Option<Value<'t>>,
    /// Punctuation, values and comments, in their order.
    tokens: Vec<TokenAndRange<'t>>,
}

/// An object or an array: its position and its content.
#[derive(Clone, Debug)]
pub(super) struct Group {
    range: Range,
    children: Vec<Range>,
}

impl Group {
    pub(super) fn of_object(object: &Object<'_>) -> Self {
        Self { range: object.range, children: object.properties.iter().map(Ranged::range).collect() }
    }

    pub(super) fn of_array(array: &Array<'_>) -> Self {
        Self { range: array.range, children: array.elements.iter().map(Ranged::range).collect() }
    }

    fn close(&self) -> usize {
        self.range.end - 1
    }
}

impl<'t> Document<'t> {
    pub(super) fn read(whole: &'t str) -> Result<Self, SettingsError> {
        let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole);
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        // Comments and trailing commas are usual in settings; any other deviation from JSON is an error.
        let accept = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &collect, &accept);
        let parsed = parsed.map_err(|error| SettingsError::Malformed(error.to_string()))?;
        let tokens = parsed.tokens.unwrap_or_default();
        match parsed.value {
            None if !tokens.is_empty() => Err(SettingsError::NoObject(Vec::new())),
            value => Ok(Self { start: whole.len() - text.len(), text, value, tokens }),
        }
    }

    /// Whether it is empty, without any comment.
    pub(super) fn is_empty(&self) -> bool {
        match &self.value {
            None => true,
            Some(Value::Object(object)) => object.properties.is_empty() && self.tokens.len() == 2,
            Some(_) => false,
        }
    }

    /// The new content of an empty text.
    pub(super) fn fill(&self, path: &[String], edit: &Edit) -> Vec<Splice> {
        let style = Style { line: Some((self.line_end(), String::new())), unit: "  ".to_owned() };
        let new = nested(path, edit, &style) + self.line_end();
        vec![Splice { at: self.start, old: String::new(), new }]
    }

    /// Inserts it into a group, which `depth` of its keys lead to, as the last entry, after the comments there.
    pub(super) fn insert(&self, group: &Group, depth: usize, edit: &Edit) -> Vec<Splice> {
        let last = group.children.last().copied();
        let from = last.map_or(group.range.start + 1, |last| last.end);
        let between: Vec<_> = self.between(from, group.close()).collect();
        let has_comma = between.iter().any(|token| token.token == Token::Comma);
        let anchor = between.last().map_or(from, |token| token.range.end);
        let has_line_comment = between.iter().any(|token| matches!(token.token, Token::CommentLine(_)));
        let head = group.children.first().map_or(group.close(), |first| first.start);
        let is_broken =
            last.is_none() || has_line_comment || self.text[group.range.start..head].contains('\n');
        let end = self.line_end();
        let outer = self.indent_of(group.range.start);
        let (space, style) = if is_broken {
            let first = group.children.first().and_then(|first| self.begins_line(first.start));
            let inner = first.map_or_else(|| outer.to_owned() + &self.unit(), str::to_owned);
            (format!("{end}{inner}"), Style { line: Some((end, inner)), unit: self.unit() })
        } else {
            (" ".to_owned(), Style { line: None, unit: String::new() })
        };
        let mut new = space + &entry(&edit.path[depth..], edit, &style);
        if last.is_some() && has_comma {
            new.push(',');
        }
        if is_broken && !self.text[anchor..group.close()].contains('\n') {
            new.push_str(&format!("{end}{outer}"));
        }
        let splice = |at, new| Splice { at: self.start + at, old: String::new(), new };
        match last {
            Some(last) if !has_comma && anchor == last.end => vec![splice(anchor, format!(",{new}"))],
            // From the end, so that the other position stays valid.
            Some(last) if !has_comma => vec![splice(anchor, new), splice(last.end, ",".to_owned())],
            _ => vec![splice(anchor, new)],
        }
    }

    /// The text without one entry of a group, its comma and its line.
    pub(super) fn without(&self, group: &Group, index: usize) -> String {
        let own = group.children[index];
        let after = self.between(own.end, group.close()).next();
        let comma = after.filter(|token| token.token == Token::Comma).map(|token| token.range);
        let before = self.tokens.iter().rev().find(|token| token.range.end <= own.start);
        let before_end = before.map_or(0, |token| token.range.end);
        let ends_line = before.is_some_and(|token| matches!(token.token, Token::CommentLine(_)));
        let is_last = index + 1 == group.children.len();
        let mut cuts = Vec::new();
        if let (None, true, Some(previous)) = (comma, index > 0, index.checked_sub(1)) {
            let mut between = self.between(group.children[previous].end, own.start);
            cuts.extend(between.find(|token| token.token == Token::Comma).map(|token| token.range));
        }
        let end = comma.map_or(own.end, |comma| comma.end);
        let rest = &self.text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        let has_own_line = self.text[before_end..own.start].contains('\n');
        // The space before it is removed too, except for a line end that a comment needs; then the space after it.
        let takes_before = rest[blank..].starts_with('\n') || (!ends_line && (has_own_line || is_last));
        let (begin, mut end) = if takes_before { (before_end, end) } else { (own.start, end + blank) };
        // It is empty now.
        if group.children.len() == 1 && begin == group.range.start + 1 {
            let inner = &self.text[end..group.close()];
            end += if inner.trim().is_empty() { inner.len() } else { 0 };
        }
        cuts.push(Range::new(begin, end));
        let mut text = self.text.to_owned();
        for cut in cuts.into_iter().rev() {
            text.replace_range(cut.start..cut.end, "");
        }
        let mark = if self.start > 0 { BYTE_ORDER_MARK.to_string() } else { String::new() };
        mark + &text
    }

    /// The place of the value at these keys, if it is empty.
    pub(super) fn emptied(&self, path: &[String]) -> Option<(Group, usize)> {
        let mut value = self.value.as_ref()?;
        let mut place = None;
        for key in path {
            let object = value.as_object()?;
            let index = object.properties.iter().position(|property| property.name.as_str() == key)?;
            (value, place) = (&object.properties[index].value, Some((Group::of_object(object), index)));
        }
        let inner = match value {
            Value::Object(object) => Group::of_object(object),
            Value::Array(array) => Group::of_array(array),
            _ => return None,
        };
        let is_empty =
            inner.children.is_empty() && self.between(inner.range.start + 1, inner.close()).next().is_none();
        place.filter(|_| is_empty)
    }

    fn between(&self, from: usize, to: usize) -> impl Iterator<Item = &TokenAndRange<'t>> {
        self.tokens.iter().filter(move |token| token.range.start >= from && token.range.end <= to)
    }

    fn line_end(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    /// The text before this place on its line, if it is only white space.
    fn begins_line(&self, at: usize) -> Option<&'t str> {
        let line = self.text[..at].rfind('\n')? + 1;
        Some(&self.text[line..at]).filter(|before| before.trim().is_empty())
    }

    /// The indentation of the line at this position.
    fn indent_of(&self, at: usize) -> &'t str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[line..at];
        &line[..line.len() - line.trim_start().len()]
    }

    /// The indentation of nested values: that of the first key.
    fn unit(&self) -> String {
        let first =
            self.value.as_ref().and_then(Value::as_object).and_then(|object| object.properties.first());
        let indent = first.and_then(|first| self.begins_line(first.range.start));
        indent.filter(|indent| !indent.is_empty()).unwrap_or("  ").to_owned()
    }
}

struct Style {
    /// The line ending and the indentation; none if all is on one line.
    line: Option<(&'static str, String)>,
    unit: String,
}

impl Style {
    fn deeper(&self) -> Self {
        let line = self.line.as_ref().map(|(end, indent)| (*end, format!("{indent}{}", self.unit)));
        Self { line, unit: self.unit.clone() }
    }

    fn around(&self, open: char, inner: &str, close: char) -> String {
        let space = |style: &Self| {
            style.line.as_ref().map_or(String::new(), |(end, indent)| format!("{end}{indent}"))
        };
        format!("{open}{}{inner}{}{close}", space(&self.deeper()), space(self))
    }
}

/// An entry of a group: with its key if the group is an object.
fn entry(path: &[String], edit: &Edit, style: &Style) -> String {
    match path.split_first() {
        Some((key, rest)) => {
            format!("{}: {}", serde_json::Value::from(key.as_str()), nested(rest, edit, style))
        }
        None => edit.value.clone(),
    }
}

fn nested(path: &[String], edit: &Edit, style: &Style) -> String {
    match (path, &edit.kind) {
        ([], Kind::Element(_)) => style.around('[', &edit.value, ']'),
        ([], Kind::Key | Kind::SharedKey) => edit.value.clone(),
        (path, _) => style.around('{', &entry(path, edit, &style.deeper()), '}'),
    }
}
