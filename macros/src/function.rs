//! The function that is the test.

use crate::Mistake;
use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

pub(crate) struct Function {
    pub(crate) attributes: TokenStream,
    pub(crate) name: TokenTree,
    /// The function without its attributes and its visibility.
    pub(crate) item: TokenStream,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> Result<Self, Mistake> {
        let not_one = |at| Mistake::new("`#[argonet::test]` can only be put on a function", at);
        let mut tokens = item.into_iter().peekable();
        let mut attributes = TokenStream::new();
        while let Some(sharp) = tokens.next_if(|token| is_punct(token, '#')) {
            let group = tokens.next().ok_or_else(|| not_one(sharp.span()))?;
            attributes.extend([sharp, group]);
        }
        if tokens.next_if(|token| is_word(token, "pub")).is_some() {
            tokens.next_if(|token| {
                matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Parenthesis)
            });
        }
        // A visibility of a macro, which may be empty.
        tokens.next_if(
            |token| matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::None),
        );
        let Some(keyword) = tokens.next() else {
            return Err(not_one(Span::call_site()));
        };
        let at = keyword.span();
        if ["async", "const", "unsafe", "extern"]
            .iter()
            .any(|word| is_word(&keyword, word))
        {
            let text = format!("remove `{keyword}`: a test is a plain function");
            return Err(Mistake::new(text, at));
        }
        if !is_word(&keyword, "fn") {
            return Err(not_one(at));
        }
        let name = tokens.next().ok_or_else(|| not_one(at))?;
        let parameters = match tokens.next() {
            Some(TokenTree::Group(group)) => group,
            Some(other) => {
                return Err(Mistake::new(
                    "a test cannot be generic: remove the parameters in `<...>`",
                    other.span(),
                ));
            }
            None => return Err(not_one(at)),
        };
        if parameters.stream().is_empty() {
            return Err(Mistake::new(
                "a test of this kind gets its world: write `world: &mut World`",
                parameters.span(),
            ));
        }
        let head = [keyword, name.clone(), parameters.into()];
        Ok(Self {
            attributes,
            name,
            item: head.into_iter().chain(tokens).collect(),
        })
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}
