# SPDX-License-Identifier: Apache-2.0
# What hack/calls and hack/report know of C files. No parser: the layout of clang-format is relied on. The body of a function
# begins with "{" and ends with "}" in the first column.
package source;

use strict;
use warnings;

# A file without comments and strings: { functions => [[name, is it static, body], …], rest => what is outside of bodies }.
sub read_file {
	my ($file) = @_;
	my ($head, $body, $rest, @found) = ("", undef, "");

	open(my $in, "<", $file) or die "$file: $!\n";
	my $text = do { local $/; <$in> };
	$text =~ s{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'}{ }gs;
	$text =~ s/__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)//g;
	for (split /\n/, $text) {
		if (defined $body) {
			$body .= "$_\n";
			next unless $_ eq "}";
			my ($name) = $head =~ /(\w+)\s*\(/;
			push @found, [$name, $head =~ /^\s*static\b/ ? 1 : 0, $body] if $name;
			($head, $body) = ("", undef);
		} elsif ($_ eq "{" && $head =~ /\(/) {
			$body = "";
		} else {
			$rest .= "$_\n";
			$head = /^\s*$|[;}]\s*$|^#/ ? "" : "$head$_ ";
		}
	}
	return { functions => \@found, rest => $rest };
}

# Words of a text that may name a function: calls, "name(", and values, in tables and in bodies: "= name,", "{name}".
# At file scope "name(" declares.
sub named_in {
	my ($text, $is_body) = @_;
	my @names;

	while ($text =~ /(?<!->)(?<![.\w])([a-z]\w*)\b/g) {
		my ($name, $from, $to) = ($1, $-[1], $+[1]);
		my $after = substr($text, $to, 8);

		if ($after =~ /^\s*\(/) {
			push @names, $name if $is_body;
		} elsif ($after =~ /^\s*[,;})\]:]/) {
			my $before = substr($text, $from > 24 ? $from - 24 : 0, $from > 24 ? 24 : $from);

			push @names, $name if $before =~ /(?:[{,=(?:&]|\breturn)\s*$/;
		}
	}
	return @names;
}

# Which file of a folder names a function of another file there, and the first such: { file => { other file => name } }.
sub calls_within {
	my %calls;

	for my $folder (@_) {
		my (%of, %home);

		for my $file (glob "$folder/*.c") {
			$of{$file} = read_file($file);
			$home{$_->[0]} = $file for grep { !$_->[1] } @{$of{$file}{functions}};
		}
		for my $file (sort keys %of) {
			my %own = map { $_->[0] => 1 } @{$of{$file}{functions}};

			for my $name ((map { named_in($_->[2], 1) } @{$of{$file}{functions}}), named_in($of{$file}{rest}, 0)) {
				$calls{$file}{$home{$name}} //= $name if $home{$name} && !$own{$name};
			}
		}
	}
	return \%calls;
}

# Circles in { from => { to => … } }, each a list that ends with its first member. Depth first: what is met again on the way down
# closes one.
sub circles {
	my ($edges) = @_;
	my (%state, @found);

	my $follow;
	$follow = sub {
		my ($at, @way) = @_;

		$state{$at} = "open";
		push @way, $at;
		for my $next (sort keys %{$edges->{$at} // {}}) {
			if (($state{$next} // "") eq "open") {
				my @circle = (@way, $next);

				shift @circle while $circle[0] ne $next;
				push @found, \@circle;
			} elsif (!$state{$next}) {
				$follow->($next, @way);
			}
		}
		$state{$at} = "done";
	};
	for (sort keys %$edges) {
		$follow->($_) unless $state{$_};
	}
	return @found;
}

1;
