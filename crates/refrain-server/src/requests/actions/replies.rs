//! Replies to notifications: a code that was in the notification, and words.

use refrain_app::verbs::Slow;
use refrain_app::verbs::answer::answer_detached;
use refrain_app::verbs::approve::{Approve, approve_detached};
use refrain_app::verbs::steer::Steering;
use refrain_core::LoopId;
use refrain_core::view::notice::{Reply, ReplyKind};
use refrain_engine::{Detail, ListEntry, Service};

use crate::requests::{Refusal, RequestHandler};

impl RequestHandler {
    /// Does what a reply asks: its first word is the code of a loop that waits. Returns that loop; none if no loop waits
    /// with this code, or not any more.
    pub(crate) fn take_reply(&self, text: &str) -> Result<Option<LoopId>, Refusal> {
        let text = text.trim();
        let (code, words) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let Some((service, id, kind)) = self.waits_with(code)? else { return Ok(None) };
        let words = words.trim();
        let _handover = self.handovers.begin();
        match kind {
            ReplyKind::Approve { tree } if words.is_empty() => {
                // Without a repository it waits with no tree.
                let tree = Some(tree.unwrap_or_else(|| Approve::NO_TREE.to_owned()));
                approve_detached(&self.context, &service, &id, &Approve { tree })?;
            }
            ReplyKind::Approve { .. } => {
                let error = format!("{id} waits for approval: accepted: its code alone");
                return Err(Refusal::new(error));
            }
            ReplyKind::Answer => {
                let asked = Steering { text: words.to_owned() };
                asked.check()?;
                answer_detached(&self.context, &service, &id, &asked, Slow::Refuse)?;
            }
        }
        Ok(Some(id))
    }

    /// The loop that waits for a reply with this code.
    fn waits_with(&self, code: &str) -> Result<Option<(Service, LoopId, ReplyKind)>, Refusal> {
        let signing = self.context.host.signing();
        let services = self.services();
        for (service, rows) in services.iter().zip(Service::list_each(&services, Detail::Line)?) {
            for row in rows {
                let ListEntry::Loop(brief) = row else { continue };
                if !brief.has_stopped() || !self.sees(service, &brief.id) {
                    continue;
                }
                // A plan, and a loop that was archived meanwhile, wait for no reply.
                let Ok(state) = service.state(&brief.id) else { continue };
                if let Some(reply) = Reply::to(&state)
                    && signing.code(&reply.binding).is_some_and(|right| right == code)
                {
                    return Ok(Some((service.clone(), brief.id.clone(), reply.kind)));
                }
            }
        }
        Ok(None)
    }
}
