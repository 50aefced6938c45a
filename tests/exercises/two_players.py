"""Answers to the exercise ``two_players``: right ones, and one for each typical mistake."""


def cleared_in_time(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()

        opt_c.zero_grad()
        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()


def frozen_meanwhile(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        critic.requires_grad_(False)
        says(critic(generator(noise)), True).backward()
        critic.requires_grad_(True)
        opt_g.step()

        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()
        opt_c.zero_grad()


def both_before(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        generator.zero_grad()
        critic.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()
        (says(critic(real), True) + says(critic(generator(noise).detach()), False)).backward()
        opt_c.step()


def never(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()
        (says(critic(real), True) + says(critic(generator(noise).detach()), False)).backward()
        opt_c.step()


def middle(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()
        says(critic(real), True).backward()
        opt_c.zero_grad()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()


def late(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()
        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        critic.zero_grad()
        opt_c.step()


def critic_first(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_c.zero_grad()
        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()
        opt_g.zero_grad()
        says(critic(generator(noise)), True).backward()
        opt_g.step()


RIGHT = (cleared_in_time, frozen_meanwhile)
WRONG = {
    "still-at-the-end": both_before,
    "never-cleared": never,
    "half-lost": middle,
    "critic-stands-still": late,
    "critic-first": critic_first,
}
