//! The options of the attribute.

use crate::Mistake;
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// The values of fields of the test, as tokens of the user's or the default.
pub(crate) struct Options {
    pub(crate) ranks: TokenStream,
    pub(crate) conduits: TokenStream,
    pub(crate) neighborhood: TokenStream,
    pub(crate) seconds: TokenStream,
    pub(crate) variables: TokenStream,
}

/// All options, for messages.
const NAMES: &str = "the options are `ranks`, `conduit`, `neighborhood_size`, `timeout` and `env`";

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self, Mistake> {
        let mut options = Self {
            ranks: tokens_of("2"),
            conduits: tokens_of("::core::option::Option::None"),
            neighborhood: tokens_of("::core::option::Option::None"),
            seconds: tokens_of("60"),
            variables: TokenStream::new(),
        };
        let mut given = Vec::new();
        for piece in pieces(tokens) {
            let mut piece = piece.into_iter();
            let name = match piece.next() {
                Some(TokenTree::Ident(name)) => name,
                other => {
                    let at = other.map_or_else(Span::call_site, |token| token.span());
                    return Err(Mistake::new(NAMES, at));
                }
            };
            if given.contains(&name.to_string()) {
                let text = format!("`{name}` is given twice");
                return Err(Mistake::new(text, name.span()));
            }
            given.push(name.to_string());
            options.set(&name, piece.collect())?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &Ident, rest: TokenStream) -> Result<(), Mistake> {
        match name.to_string().as_str() {
            "ranks" => self.ranks = list(value(name, rest)?),
            "conduit" => {
                let some = pieces(list(value(name, rest)?)).into_iter().map(some);
                self.conduits = with_commas(some);
            }
            "neighborhood_size" => self.neighborhood = some(value(name, rest)?),
            "timeout" => self.seconds = value(name, rest)?,
            "env" => self.variables = variables(name, rest)?,
            _ => {
                let text = format!("there is no option `{name}`; {NAMES}");
                return Err(Mistake::new(text, name.span()));
            }
        }
        Ok(())
    }
}

/// What stands behind the `=`.
fn value(name: &Ident, rest: TokenStream) -> Result<TokenStream, Mistake> {
    let mut rest = rest.into_iter();
    let equals = matches!(rest.next(), Some(TokenTree::Punct(p)) if p.as_char() == '=');
    let value: TokenStream = rest.collect();
    match equals && !value.is_empty() {
        true => Ok(value),
        false => Err(Mistake::new(
            format!("`{name}` needs a value: `{name} = ...`"),
            name.span(),
        )),
    }
}

/// The elements of a list in brackets; another value is a list of one.
fn list(value: TokenStream) -> TokenStream {
    let mut tokens = value.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) => match group.delimiter() {
            Delimiter::Bracket => group.stream(),
            // A value of a macro.
            Delimiter::None => list(group.stream()),
            _ => value,
        },
        _ => value,
    }
}

/// Pairs from `("NAME" = "value", ...)`.
fn variables(name: &Ident, rest: TokenStream) -> Result<TokenStream, Mistake> {
    let wrong = || {
        let text = "`env` has variables in parentheses: `env(\"NAME\" = \"value\")`";
        Mistake::new(text, name.span())
    };
    let mut rest = rest.into_iter();
    let group = match (rest.next(), rest.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => {
            group
        }
        _ => return Err(wrong()),
    };
    let mut pairs = Vec::new();
    for piece in pieces(group.stream()) {
        let mut sides = split(piece, '=').into_iter();
        let (Some(variable), Some(value), None) = (sides.next(), sides.next(), sides.next()) else {
            return Err(wrong());
        };
        let sides = with_commas([variable, value].into_iter());
        pairs.push(TokenTree::Group(Group::new(Delimiter::Parenthesis, sides)).into());
    }
    Ok(with_commas(pairs.into_iter()))
}

fn some(value: TokenStream) -> TokenStream {
    let mut tokens = tokens_of("::core::option::Option::Some");
    tokens.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, value))]);
    tokens
}

/// The pieces between commas.
fn pieces(tokens: TokenStream) -> Vec<TokenStream> {
    split(tokens, ',')
}

/// The pieces between such signs; a sign at the end begins none.
fn split(tokens: TokenStream, sign: char) -> Vec<TokenStream> {
    let mut pieces = vec![TokenStream::new()];
    for token in tokens {
        match (&token, pieces.last_mut()) {
            (TokenTree::Punct(punct), _) if punct.as_char() == sign => {
                pieces.push(TokenStream::new());
            }
            (_, Some(last)) => last.extend([token]),
            (_, None) => {}
        }
    }
    if pieces.last().is_some_and(TokenStream::is_empty) {
        pieces.pop();
    }
    pieces
}

fn with_commas(pieces: impl Iterator<Item = TokenStream>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for piece in pieces {
        tokens.extend(piece);
        tokens.extend(tokens_of(","));
    }
    tokens
}

/// The tokens of a text of this crate's own.
fn tokens_of(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}
