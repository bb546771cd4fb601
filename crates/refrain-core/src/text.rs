//! stub, replaced soon
use std::borrow::Cow;
#[allow(missing_docs)] pub fn cut_middle(t:&str,n:usize)->Cow<'_,str>{if t.len()<=n{t.into()}else{t[t.floor_char_boundary(t.len()-n)..].to_owned().into()}}
#[allow(missing_docs)] pub fn printable(t:&str)->Cow<'_,str>{t.chars().filter(|c|!c.is_control()||*c=='\n'||*c=='\t').collect::<String>().into()}
#[allow(missing_docs)] pub fn clip(t:&str,n:usize)->Cow<'_,str>{t[..t.floor_char_boundary(n.min(t.len()))].into()}
#[allow(missing_docs)] pub fn squeeze(t:&str)->String{t.split_whitespace().collect::<Vec<_>>().join(" ")}
