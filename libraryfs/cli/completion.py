"""`libraryfs completion`: the script that makes a shell complete commands, options and library paths."""

import click
from click.shell_completion import get_completion_class

EPILOG = """\b
Examples:
  libraryfs completion bash >> ~/.bashrc
  libraryfs completion fish > ~/.config/fish/completions/libraryfs.fish
"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the shell's completion script."""
    kind = get_completion_class(shell)
    assert kind is not None
    program = context.find_root().command
    # source_vars and not source(): the latter starts bash to look at its version, and bash need not be here.
    script = kind(program, {}, "libraryfs", "_LIBRARYFS_COMPLETE")
    click.echo(script.source_template % script.source_vars())
