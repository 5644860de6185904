//! The attribute `argonet::test`, which is documented there.
//!
//! The crate is not for programs, which have `argonet::test`, and promises no stability.
#![forbid(unsafe_code)]

mod function;
mod options;

use function::Function;
use options::Options;
use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// The documentation is that of `argonet::test`.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = Options::parse(options).and_then(|options| {
        let function = Function::parse(item.clone())?;
        Ok(expand(&options, &function))
    });
    expanded.unwrap_or_else(|mistake| {
        // The function stays, so that the mistake is the only error.
        let mut tokens = mistake.into_tokens();
        tokens.extend(item);
        tokens
    })
}

/// A mistake in the use of the attribute, and where it is.
struct Mistake {
    text: String,
    at: Span,
}

impl Mistake {
    fn new(text: impl Into<String>, at: Span) -> Self {
        let text = text.into();
        Self { text, at }
    }

    fn into_tokens(self) -> TokenStream {
        let mut text = Literal::string(&self.text);
        text.set_span(self.at);
        let mut call = [
            TokenTree::Ident(Ident::new("compile_error", self.at)),
            TokenTree::Punct(Punct::new('!', Spacing::Alone)),
            TokenTree::Group(Group::new(
                Delimiter::Brace,
                TokenTree::Literal(text).into(),
            )),
        ];
        for token in &mut call {
            token.set_span(self.at);
        }
        call.into_iter().collect()
    }
}

/// The test for the harness.
///
/// Words in capitals are replaced by the user's tokens.
const TEMPLATE: &str = r#"
    #[::core::prelude::v1::test]
    ATTRIBUTES
    fn NAME() {
        FUNCTION
        ::argonet::__private::run_test(
            {
                const __ARGONET_TEST: ::argonet::__private::Test = ::argonet::__private::Test {
                    name: ::core::concat!(::core::module_path!(), "::", ::core::stringify!(NAME)),
                    ranks: &[RANKS],
                    conduits: &[CONDUITS],
                    neighborhood_size: NEIGHBORHOOD,
                    timeout_s: SECONDS,
                    variables: &[VARIABLES],
                };
                &__ARGONET_TEST
            },
            NAME,
        )
    }
"#;

fn expand(options: &Options, function: &Function) -> TokenStream {
    let template = TEMPLATE.parse().unwrap_or_default();
    fill(template, &|word| {
        Some(match word {
            "ATTRIBUTES" => function.attributes.clone(),
            "NAME" => function.name.clone().into(),
            "FUNCTION" => function.item.clone(),
            "RANKS" => options.ranks.clone(),
            "CONDUITS" => options.conduits.clone(),
            "NEIGHBORHOOD" => options.neighborhood.clone(),
            "SECONDS" => options.seconds.clone(),
            "VARIABLES" => options.variables.clone(),
            _ => return None,
        })
    })
}

fn fill(template: TokenStream, value: &dyn Fn(&str) -> Option<TokenStream>) -> TokenStream {
    let filled = template.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut filled = Group::new(group.delimiter(), fill(group.stream(), value));
            filled.set_span(group.span());
            TokenTree::Group(filled).into()
        }
        TokenTree::Ident(word) => {
            let found = value(&word.to_string());
            found.unwrap_or_else(|| TokenTree::Ident(word).into())
        }
        other => other.into(),
    });
    filled.collect()
}
