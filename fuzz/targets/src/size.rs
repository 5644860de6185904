//! Sizes as users write them in settings.

use argonet_base::size::parse_size;

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_size(&text) {
        Ok(bytes) => {
            assert_eq!(parse_size(&bytes.to_string()), Ok(bytes), "{text:?}");
            assert_eq!(parse_size(&text.to_uppercase()), Ok(bytes), "{text:?}");
            assert_eq!(parse_size(&format!(" {text}\t")), Ok(bytes), "{text:?}");
        }
        // The message is for people: it must name the error.
        Err(error) => assert!(error.to_string().contains("allowed is"), "{error}"),
    }
}
