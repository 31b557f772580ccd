//! Which language a client asked for.

/// The languages of titles and details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// Chinese.
    Zh,
    /// English, also for whoever asks for neither.
    #[default]
    En,
}

impl Language {
    /// Reads `Accept-Language` (RFC 9110 §12.5.4): the language of ours with the highest weight, the first
    /// of equals. Unreadable parts are skipped.
    #[must_use]
    pub fn accepted(header: &str) -> Self {
        let mut best = (Self::default(), 0.0_f32);
        for part in header.split(',').take(32) {
            let mut words = part.split(';');
            let tag = words.next().unwrap_or_default().trim();
            let weight = words
                .find_map(|word| word.trim().strip_prefix("q="))
                .map_or(Some(1.0), |text| text.parse::<f32>().ok())
                .unwrap_or(0.0);
            let language = match tag.split('-').next().unwrap_or_default() {
                main if main.eq_ignore_ascii_case("zh") => Self::Zh,
                main if main.eq_ignore_ascii_case("en") => Self::En,
                _ => continue,
            };
            if weight > best.1 {
                best = (language, weight);
            }
        }
        best.0
    }

    /// The tag for `Content-Language`.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Zh => "zh",
            Self::En => "en",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn the_highest_weight_of_ours_wins_and_english_is_the_default() {
        for (header, expected) in [
            ("", Language::En),
            ("fr-FR, de;q=0.9", Language::En),
            ("zh-CN,zh;q=0.9,en;q=0.8", Language::Zh),
            ("en-US,zh;q=0.5", Language::En),
            ("en;q=0.2, ZH-hans;q=0.7", Language::Zh),
            ("zh;q=0, en;q=0.1", Language::En),
            ("zh;q=high", Language::En),
        ] {
            assert_eq!(Language::accepted(header), expected, "{header}");
        }
    }
}
