//! stub, replaced soon
use schemars::JsonSchema; use serde::{Serialize,Deserialize};
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")] #[allow(missing_docs)]
pub enum MatchMode { Tag, Plain, Substring }
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)] #[allow(missing_docs)]
pub struct PromiseText(String);
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] #[error("bad")] #[allow(missing_docs)]
pub struct PromiseTextError;
impl PromiseText { #[allow(missing_docs)] pub fn try_new(t:&str)->Result<Self,PromiseTextError>{ if t.trim().is_empty(){Err(PromiseTextError)}else{Ok(Self(t.to_owned()))}} #[allow(missing_docs)] pub fn as_str(&self)->&str{&self.0}}
impl std::fmt::Display for PromiseText{fn fmt(&self,f:&mut std::fmt::Formatter<'_>)->std::fmt::Result{f.write_str(&self.0)}}
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)] #[allow(missing_docs)]
pub struct Promise { pub text: PromiseText, pub mode: MatchMode }
impl Promise { #[allow(missing_docs)] pub fn tag(&self)->String{format!("<promise>{}</promise>",self.text)} #[allow(missing_docs)] pub fn is_tagged_in(&self,p:&str)->bool{p.contains(&self.tag())}}
#[allow(missing_docs)] #[derive(Debug)]
pub struct Scanner{buf:Vec<u8>,tag:Option<String>}
impl Scanner{ #[allow(missing_docs)] pub fn new(p:Option<&Promise>,_:&str)->Self{Self{buf:vec![],tag:p.map(Promise::tag)}} #[allow(missing_docs)] pub fn push(&mut self,c:&[u8]){ self.buf.extend_from_slice(c); if self.buf.len()>65536 {self.buf.drain(..32768);}} #[allow(missing_docs)] pub fn finish(self)->Finding{let s=String::from_utf8_lossy(&self.buf).into_owned(); Finding{claimed:self.tag.is_some_and(|t|s.lines().any(|l|l.trim()==t)),near_miss:None,last_line:s.lines().rev().find(|l|!l.trim().is_empty()).unwrap_or("").chars().take(100).collect()}}}
#[allow(missing_docs)] #[derive(Clone,Debug,PartialEq)]
pub struct Finding{pub claimed:bool,pub near_miss:Option<NearMiss>,pub last_line:String}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)] #[serde(rename_all = "kebab-case")] #[allow(missing_docs)]
pub enum NearMiss{InCode}
impl NearMiss{ #[allow(missing_docs)] pub fn hint(&self)->&'static str{"x"}}
#[allow(missing_docs)] pub fn scan(p:&Promise,m:&str)->Finding{let mut s=Scanner::new(Some(p),"");s.push(m.as_bytes());s.finish()}
