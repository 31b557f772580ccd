//! What every HTTP function needs: parsing, tokens, problem answers.
