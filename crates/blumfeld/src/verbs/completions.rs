//! `blumfeld completions` and `blumfeld man`: what shells and readers of manuals need, made from the options themselves.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::error::VerbError;
use crate::output::stdout;

/// The options of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsOptions {
    /// The shell, which reads the output, such as by: source <(blumfeld completions bash)
    #[arg(value_enum)]
    shell: Shell,
}

/// The options of `man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManOptions {
    /// The verb; the page of the whole without it
    #[arg(conflicts_with = "dir")]
    verb: Option<String>,
    /// Write all pages into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints what completes `command` in a shell.
///
/// # Errors
/// If the output cannot be written to.
pub(crate) fn completions(options: &CompletionsOptions, mut command: Command) -> Result<(), VerbError> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    let mut out = stdout();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Prints a page of the manual, or writes all.
///
/// # Errors
/// If there is no such verb, or the pages cannot be written.
pub(crate) fn man(options: &ManOptions, mut command: Command) -> Result<(), VerbError> {
    command.build();
    if let Some(dir) = &options.dir {
        return write_all(&command, dir);
    }
    let page = match &options.verb {
        None => page(command),
        Some(verb) => match command.find_subcommand(verb) {
            Some(found) => page(found.clone()),
            None => return Err(VerbError::Usage(format!("{verb} is no verb; see blumfeld --help"))),
        },
    };
    let mut out = stdout();
    out.write_all(&page?)?;
    Ok(out.flush()?)
}

fn write_all(command: &Command, dir: &Path) -> Result<(), VerbError> {
    fs::create_dir_all(dir).map_err(|error| VerbError::file(dir, error))?;
    for one in std::iter::once(command).chain(command.get_subcommands()) {
        // Building has named the verbs' pages: blumfeld-topics.
        let name = one.get_display_name().unwrap_or(one.get_name());
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page(one.clone())?).map_err(|error| VerbError::file(&path, error))?;
    }
    Ok(())
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[derive(Debug, clap::Parser)]
    #[command(name = "blumfeld", about = "A broker")]
    struct Cli {
        #[command(subcommand)]
        verb: Verb,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Verb {
        /// Do something
        Act {
            /// How
            #[arg(long)]
            how: Option<String>,
        },
    }

    #[test]
    fn every_verb_has_a_page_with_its_options() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().join("man1");
        man(&ManOptions { verb: None, dir: Some(dir.clone()) }, Cli::command()).unwrap();
        let page = fs::read_to_string(dir.join("blumfeld-act.1")).unwrap();
        assert!(page.contains("\\-\\-how") && page.contains("Do something"), "{page}");
        assert!(fs::read_to_string(dir.join("blumfeld.1")).unwrap().contains("A broker"));
    }

    #[test]
    fn a_page_of_what_is_no_verb_is_refused() {
        let options = ManOptions { verb: Some("fly".to_owned()), dir: None };
        assert!(matches!(man(&options, Cli::command()), Err(VerbError::Usage(_))));
    }
}
