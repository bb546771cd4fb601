//! Options that several verbs share, where one of them takes them with a difference: another heading, hidden, or only beside
//! another option. So each option is defined once.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Id};

pub trait Difference {
    fn of(arg: Arg) -> Arg;
}

#[derive(Debug)]
pub struct AdaptedArgs<T, D> {
    pub args: T,
    difference: PhantomData<D>,
}

impl<T: FromArgMatches, D> FromArgMatches for AdaptedArgs<T, D> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { args: T::from_arg_matches(matches)?, difference: PhantomData })
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        Ok(Self { args: T::from_arg_matches_mut(matches)?, difference: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.args.update_from_arg_matches(matches)
    }
}

impl<T: Args, D: Difference> Args for AdaptedArgs<T, D> {
    fn augment_args(command: Command) -> Command {
        let known: BTreeSet<Id> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
        let command = T::augment_args(command);
        let new: Vec<Id> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
        let new = new.into_iter().filter(|id| !known.contains(id));
        new.fold(command, |command, id| command.mut_arg(id, D::of))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
