//! Types of the functions for active messages under C's names.

use crate::am::arguments::What;
use crate::am::entry::Entry;
use crate::am::local::{AnyLocal, Local};
use crate::am::source_descriptor::SourceDescriptor;
use crate::am::token::{Info, Token};
use crate::export::names;

names! {
    What = "uint32_t",
    Local = "gex_Event_t *",
    AnyLocal = "const gex_Event_t *",
    *mut Entry = "gex_AM_Entry_t *",
    *mut Token = "gex_Token_t",
    *mut Info = "gex_Token_Info_t *",
    *const SourceDescriptor = "gex_AM_SrcDesc_t",
    *const i32 = "const gex_AM_Arg_t *",
}
