//! Titles and details, in both languages.

use super::{Language, ProblemCode};

/// Title and detail of a code.
pub(super) const fn texts(code: ProblemCode, language: Language) -> (&'static str, &'static str) {
    match language {
        Language::En => english(code),
        Language::Zh => chinese(code),
    }
}

const fn english(code: ProblemCode) -> (&'static str, &'static str) {
    match code {
        ProblemCode::Malformed => ("Malformed request", "The request cannot be read."),
        ProblemCode::IdempotencyKeyRequired => (
            "Idempotency-Key required",
            "Send the header Idempotency-Key with 1 to 255 visible ASCII characters, such as a UUID, and the same one when you retry.",
        ),
        ProblemCode::Unauthenticated => ("Sign in first", "There is no valid token."),
        ProblemCode::Forbidden => ("Not allowed", "The token does not allow this call."),
        ProblemCode::NotFound => ("No such address", "Nothing is served at this path."),
        ProblemCode::SaleNotFound => ("No such sale", "There is no sale with this id."),
        ProblemCode::OrderNotFound => (
            "No such order",
            "You have no order with this id in this sale.",
        ),
        ProblemCode::MethodNotAllowed => (
            "Method not allowed",
            "The header Allow lists the methods of this path.",
        ),
        ProblemCode::NotStarted => (
            "Not started yet",
            "The sale has not opened. Try again at opens_at.",
        ),
        ProblemCode::Paused => (
            "Paused",
            "The sale is paused. Orders made before stay valid.",
        ),
        ProblemCode::SoldOut => ("Sold out", "No unit is free now."),
        ProblemCode::AlreadyOrdered => (
            "Already ordered",
            "You have an order in this sale; see order_url.",
        ),
        ProblemCode::InProgress => (
            "Your order is on its way",
            "The units are held for you. Look at order_url, or repeat the call with the same key.",
        ),
        ProblemCode::OrderClosed => (
            "Order closed",
            "The order of this key is closed. Use a new key to buy again.",
        ),
        ProblemCode::NotEnoughLeft => (
            "Not enough left",
            "Fewer units are free than you asked for.",
        ),
        ProblemCode::NotSettledYet => (
            "Not settled yet",
            "The order is still on its way into the books. Try again shortly.",
        ),
        ProblemCode::AlreadyPaid => ("Already paid", "The order is paid and cannot be cancelled."),
        ProblemCode::Ended => ("Ended", "The sale is over."),
        ProblemCode::BodyTooLarge => ("Body too large", "The body is larger than this call takes."),
        ProblemCode::UnsupportedMediaType => (
            "Unsupported media type",
            "Send the body with Content-Type: application/json.",
        ),
        ProblemCode::QuantityOverLimit => (
            "Over the limit",
            "This is more than one buyer may have in this sale.",
        ),
        ProblemCode::IdempotencyKeyReused => (
            "Idempotency-Key reused",
            "The key was used with another request. Use a new key for a new request.",
        ),
        ProblemCode::InvalidTransition => (
            "Not possible in this state",
            "The present state does not allow this operation.",
        ),
        ProblemCode::RateLimited => ("Too many attempts", "Wait before you try again."),
        ProblemCode::Busy => (
            "Busy",
            "The service cannot answer right now. Nothing was done; repeat the call with the same key.",
        ),
        ProblemCode::OutcomeUnknown => (
            "Outcome unknown",
            "The answer was lost on the way. Repeat the call with the same key: it finds your order, and none is made twice.",
        ),
    }
}

const fn chinese(code: ProblemCode) -> (&'static str, &'static str) {
    match code {
        ProblemCode::Malformed => ("请求格式错误", "无法读取该请求。"),
        ProblemCode::IdempotencyKeyRequired => (
            "缺少 Idempotency-Key",
            "请在请求头 Idempotency-Key 中提供 1 至 255 个可见 ASCII 字符(如 UUID),重试时使用同一个值。",
        ),
        ProblemCode::Unauthenticated => ("请先登录", "没有有效的令牌。"),
        ProblemCode::Forbidden => ("无权操作", "该令牌不允许此操作。"),
        ProblemCode::NotFound => ("地址不存在", "该路径下没有任何内容。"),
        ProblemCode::SaleNotFound => ("活动不存在", "没有此编号的活动。"),
        ProblemCode::OrderNotFound => ("订单不存在", "您在该活动中没有此编号的订单。"),
        ProblemCode::MethodNotAllowed => ("不支持该方法", "响应头 Allow 列出了该路径支持的方法。"),
        ProblemCode::NotStarted => ("活动尚未开始", "活动还没有开始,请在 opens_at 时再试。"),
        ProblemCode::Paused => ("活动暂停", "活动已暂停,此前的订单仍然有效。"),
        ProblemCode::SoldOut => ("已售罄", "目前没有可售库存。"),
        ProblemCode::AlreadyOrdered => ("您已下单", "您在该活动中已有订单,见 order_url。"),
        ProblemCode::InProgress => (
            "订单处理中",
            "库存已为您保留,请查看 order_url,或用同一个键重试。",
        ),
        ProblemCode::OrderClosed => ("订单已关闭", "该键对应的订单已关闭,再次购买请使用新的键。"),
        ProblemCode::NotEnoughLeft => ("库存不足", "剩余数量少于您要的数量。"),
        ProblemCode::NotSettledYet => ("订单尚未入账", "订单正在入账,请稍后再试。"),
        ProblemCode::AlreadyPaid => ("订单已支付", "订单已支付,不能取消。"),
        ProblemCode::Ended => ("活动已结束", "该活动已结束。"),
        ProblemCode::BodyTooLarge => ("请求体过大", "请求体超过了此接口的上限。"),
        ProblemCode::UnsupportedMediaType => (
            "不支持的内容类型",
            "请以 Content-Type: application/json 发送请求体。",
        ),
        ProblemCode::QuantityOverLimit => ("超过限购数量", "超过了该活动每人限购的数量。"),
        ProblemCode::IdempotencyKeyReused => (
            "Idempotency-Key 被重复使用",
            "该键已用于另一个请求,新的请求请使用新的键。",
        ),
        ProblemCode::InvalidTransition => ("当前状态不允许", "当前状态不允许此操作。"),
        ProblemCode::RateLimited => ("请求过于频繁", "请稍后再试。"),
        ProblemCode::Busy => (
            "系统繁忙",
            "暂时无法处理,没有产生任何变更,请用同一个键重试。",
        ),
        ProblemCode::OutcomeUnknown => (
            "结果未知",
            "结果在途中丢失,请用同一个键重试:会找到您的订单,不会重复下单。",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text_in_both_languages() {
        for language in [Language::En, Language::Zh] {
            let mut titles = std::collections::BTreeSet::new();
            for code in ProblemCode::ALL {
                let (title, detail) = texts(code, language);
                assert!(!detail.is_empty());
                assert!(titles.insert(title), "{title}");
                assert_eq!(language == Language::En, title.is_ascii(), "{title}");
            }
        }
    }
}
