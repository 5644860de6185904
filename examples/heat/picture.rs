//! Pictures: any PNG in, a PNG of the same size and color layout out.
//!
//! Gray stays gray, colors stay colors, an alpha channel stays, and so does a depth of 16 bits.
//! Formats that could not hold the values between are widened to 8 bits a channel: depths of 1, 2
//! and 4 bits, and palettes. A color that is marked as transparent, or a palette with transparency,
//! becomes an alpha channel. The result is not interlaced; of an animation the first picture is
//! taken. Resolution, gamma and color profile are kept.
//!
//! Color channels diffuse. The alpha channel is kept as it is.

use std::error::Error;
use std::fs::{self, File, Permissions};
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Info, Limits, Transformations};
use tempfile::NamedTempFile;

use crate::plate::{Shape, zeroes};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Beyond it a size is not believed.
///
/// The values of so many pixels take up to 6 GiB.
const MOST_PIXELS: u64 = 1 << 28;
/// The most memory that the decoder may take for chunks beside the picture, such as a color
/// profile.
const MOST_CHUNK_BYTES: usize = 64 << 20;

/// A picture as it was read.
pub struct Picture {
    /// Fields of the header.
    info: Info<'static>,
    /// Samples of all pixels: bytes, or pairs of bytes with the high one first.
    bytes: Vec<u8>,
}

impl Picture {
    /// Reads a file.
    ///
    /// The error names it.
    pub fn read(path: &Path) -> Result<Self> {
        Self::decode(path).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn decode(path: &Path) -> Result<Self> {
        let file = BufReader::new(File::open(path)?);
        let limits = Limits {
            bytes: MOST_CHUNK_BYTES,
        };
        let mut decoder = Decoder::new_with_limits(file, limits);
        decoder.set_transformations(Transformations::EXPAND);
        let header = decoder.read_header_info().map_err(explain)?;
        let (width, height) = header.size();
        if u64::from(width) * u64::from(height) > MOST_PIXELS {
            return Err(format!(
                "{width} x {height} pixels are too many; at most {MOST_PIXELS} are allowed"
            )
            .into());
        }
        let mut reader = decoder.read_info().map_err(explain)?;
        let len = reader.output_buffer_size();
        let mut bytes = zeroes(len.ok_or("the picture does not fit into memory")?)?;
        let frame = reader.next_frame(&mut bytes).map_err(explain)?;
        if reader.info().animation_control.is_none() {
            reader.finish().map_err(explain)?;
        }
        let read = reader.info();
        let mut info = Info::with_size(width, height);
        (info.color_type, info.bit_depth) = (frame.color_type, frame.bit_depth);
        info.pixel_dims = read.pixel_dims;
        info.srgb = read.srgb;
        info.source_gamma = read.source_gamma;
        info.source_chromaticities = read.source_chromaticities;
        info.icc_profile = read.icc_profile.clone();
        Ok(Self { info, bytes })
    }

    fn has_alpha(&self) -> bool {
        matches!(
            self.info.color_type,
            ColorType::GrayscaleAlpha | ColorType::Rgba
        )
    }

    /// Size; alpha is no channel of it.
    pub fn shape(&self) -> Shape {
        Shape {
            width: self.info.width as usize,
            height: self.info.height as usize,
            channels: self.info.color_type.samples() - usize::from(self.has_alpha()),
        }
    }

    fn sample_bytes(&self) -> usize {
        match self.info.bit_depth {
            BitDepth::Sixteen => 2,
            _ => 1,
        }
    }

    /// The color channels of all pixels, 0 to 255 or 65535.
    pub fn values(&self) -> Result<Vec<f64>> {
        let shape = self.shape();
        let mut values = zeroes(shape.height * shape.row())?;
        let pixel = self.info.color_type.samples() * self.sample_bytes();
        let pixels = self.bytes.chunks_exact(pixel);
        for (values, pixel) in values.chunks_exact_mut(shape.channels).zip(pixels) {
            // The pixel's alpha, the last of its samples, is left over.
            for (value, sample) in values.iter_mut().zip(pixel.chunks(self.sample_bytes())) {
                *value = sample
                    .iter()
                    .fold(0.0, |high, &low| high * 256.0 + f64::from(low));
            }
        }
        Ok(values)
    }

    /// Puts other values in, rounded.
    pub fn set_values(&mut self, values: &[f64]) {
        let (channels, sample_bytes) = (self.shape().channels, self.sample_bytes());
        let pixel = self.info.color_type.samples() * sample_bytes;
        let pixels = self.bytes.chunks_exact_mut(pixel);
        for (values, pixel) in values.chunks_exact(channels).zip(pixels) {
            for (value, sample) in values.iter().zip(pixel.chunks_mut(sample_bytes)) {
                // A conversion to an integer ends at the limits of the type.
                match sample {
                    [high, low] => [*high, *low] = (value.round() as u16).to_be_bytes(),
                    [byte] => *byte = value.round() as u8,
                    _ => {}
                }
            }
        }
    }

    /// Writes the file, whole or not at all: the old file stays until the new one is complete.
    pub fn write(&self, path: &Path) -> Result<()> {
        let write = || {
            let target = target(path)?;
            let mut file = scratch_beside(&target)?;
            let mut out = BufWriter::new(&mut file);
            let mut encoder = Encoder::with_info(&mut out, self.info.clone())?.write_header()?;
            encoder.write_image_data(&self.bytes)?;
            encoder.finish()?;
            out.flush()?;
            drop(out);
            file.as_file().sync_all()?;
            file.persist(target).map_err(|error| error.error)?;
            Ok(())
        };
        named(path, write())
    }
}

/// The decoder's errors in other words where its own say little.
fn explain(error: DecodingError) -> Box<dyn Error> {
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            "the file is empty or was cut off".into()
        }
        DecodingError::Format(error) => format!("not a good PNG file: {error}").into(),
        DecodingError::LimitsExceeded => {
            format!("more than {MOST_CHUNK_BYTES} bytes beside the picture, or too large a picture")
                .into()
        }
        error => error.into(),
    }
}

fn named<T>(path: &Path, result: Result<T>) -> Result<T> {
    result.map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Checks before the work begins that a file can be written there.
pub fn check_target(path: &Path) -> Result<()> {
    named(
        path,
        target(path).and_then(|target| scratch_beside(&target).map(drop)),
    )
}

/// The file that will be replaced or made, behind any symbolic link.
fn target(path: &Path) -> Result<PathBuf> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => Err("there is something other than a file".into()),
        Ok(there) if there.permissions().readonly() => Err("the file there is read-only".into()),
        Ok(_) => Ok(fs::canonicalize(path)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// A file of no lasting name in the directory of `target`.
///
/// It goes away unless it is given that name.
fn scratch_beside(target: &Path) -> Result<NamedTempFile> {
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let made = tempfile::Builder::new()
        .prefix(".heat-")
        // The process's mask applies, as for any new file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory);
    // The error itself would name the scratch file.
    made.map_err(|error| match fs::metadata(directory) {
        Err(error) => format!("its directory: {error}").into(),
        Ok(_) => error.into(),
    })
}
